/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of an executable graph name their memory when it is made or updated; each launch uses
 * all of that. The driver lists the nodes. Application threads, any lock held.
 */
#include "../base/os.h"
#include "call.h"
#include "../capture.h"
#include "kernel_layouts.h"
#include "known.h"
#include "use_launches.h"

#define NODES_MOST (1u << 20)
#define DEPTH_MOST 8u /* graphs in graphs */

static void add_known(struct places *p, uint64_t address)
{
	if (known_is(address))
		places_add(p, address);
}

static void add_kernel(struct places *p, const struct cuda_kernel_node *node)
{
	void *handle = node->function ? node->function : node->kernel;
	struct kernel *k;

	kernel_saw_handle(handle, !node->function);
	k = kernel_of(handle);
	if (!k || !k->is_read)
		p->unread = true;
	else
		places_add_kernel(p, k, node->grid, node->params, node->extra);
}

static void add_kernel_node(struct places *p, void *node)
{
	typeof(&cuGraphKernelNodeGetParams_v2) ask = MAYBE_DRIVER(cuGraphKernelNodeGetParams_v2);
	struct cuda_kernel_node params = { .function = NULL };

	if (ask && !ask(node, &params))
		add_kernel(p, &params);
}

static void add_copy_node(struct places *p, void *node)
{
	typeof(&cuGraphMemcpyNodeGetParams) ask = MAYBE_DRIVER(cuGraphMemcpyNodeGetParams);
	struct cuda_copy3d c = { .width = 0 };

	if (!ask || ask(node, &c))
		return;
	add_known(p, copy_side_address(&c.source));
	add_known(p, copy_side_address(&c.target));
}

static void add_set_node(struct places *p, void *node)
{
	typeof(&cuGraphMemsetNodeGetParams) ask = MAYBE_DRIVER(cuGraphMemsetNodeGetParams);
	struct cuda_set_node s = { .address = 0 };

	if (ask && !ask(node, &s))
		add_known(p, s.address);
}

static void add_graph(struct places *p, void *graph, unsigned depth);

static void add_graph_node(struct places *p, void *node, unsigned depth)
{
	typeof(&cuGraphChildGraphNodeGetGraph) ask = MAYBE_DRIVER(cuGraphChildGraphNodeGetGraph);
	void *graph = NULL;

	if (ask && !ask(node, &graph) && graph)
		add_graph(p, graph, depth + 1);
}

static void add_node(struct places *p, void *node, unsigned depth)
{
	typeof(&cuGraphNodeGetType) ask = MAYBE_DRIVER(cuGraphNodeGetType);
	int type = -1;

	if (!ask || ask(node, &type))
		return;
	if (type == CUDA_NODE_KERNEL)
		add_kernel_node(p, node);
	else if (type == CUDA_NODE_COPY)
		add_copy_node(p, node);
	else if (type == CUDA_NODE_SET)
		add_set_node(p, node);
	else if (type == CUDA_NODE_GRAPH)
		add_graph_node(p, node, depth);
}

static void add_graph(struct places *p, void *graph, unsigned depth)
{
	typeof(&cuGraphGetNodes) ask = MAYBE_DRIVER(cuGraphGetNodes);
	size_t count = 0, got;
	void **nodes;

	if (depth == DEPTH_MOST || !ask || ask(graph, NULL, &count) || !count || count > NODES_MOST)
		return;
	nodes = os_map(count * sizeof(*nodes));
	got = count;
	if (nodes && !ask(graph, nodes, &got))
		for (size_t i = 0; i < got && i < count; i++)
			add_node(p, nodes[i], depth);
	if (nodes)
		os_unmap(nodes, count * sizeof(*nodes));
}

static struct places begin_places(void *exec)
{
	struct gmt_event e = { .kind = GMT_GRAPH_USE, .stream = (uint64_t)exec, .device = -1 };
	struct places p;

	places_begin(&p, &e, NULL);
	return p;
}

/* A record with addr 0 says that not all of the graph's kernels could be read. */
static void end(struct places *p)
{
	struct gmt_event e = p->event;

	places_end(p);
	e.addr = e.size = e.arg0 = e.arg1 = 0;
	e.flags = p->more ? GMT_FLAG_MORE : 0;
	if (p->unread)
		gmt_capture(&e);
}

void graph_made(void *exec, void *graph)
{
	struct places p = begin_places(exec);

	add_graph(&p, graph, 0);
	end(&p);
}

/* The places of the node's old parameters stay: a use too many, never one too few. */
void graph_kernel_changed(void *exec, const struct cuda_kernel_node *k)
{
	struct places p = begin_places(exec);

	p.more = true;
	if (k)
		add_kernel(&p, k);
	end(&p);
}
