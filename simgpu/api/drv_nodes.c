/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's nodes of graphs: kernels, copies and fills that a program adds, reads, or changes,
 * in a graph or in an executable one.
 */
#include <string.h>
#include "../core/clock.h"
#include "../kernels/kernels.h"
#include "graph_nodes.h"

#define GRAPH(g) ((struct sim_graph *)(g))

/* The node that gets a spec: a new one, an existing one, or one of an executable graph. */
struct target {
	CUgraph graph;
	const CUgraphNode *deps;
	size_t n;
	CUgraphNode *node;
	CUgraphExec exec;
	CUgraphNode of;
};

#define NEW	 (&(struct target){ .graph = graph, .deps = deps, .n = n, .node = node })
#define SET	 (&(struct target){ .of = node })
#define SET_EXEC (&(struct target){ .exec = exec, .of = node })

static int put(const struct target *t, const struct node_spec *spec)
{
	int result;

	if (t->graph)
		result = graph_add(GRAPH(t->graph), spec, (void *const *)t->deps, t->n,
				   (void **)t->node);
	else if (t->exec)
		result = graph_exec_set(t->exec, t->of, spec);
	else
		result = t->of ? graph_set(t->of, spec) : SIM_INVALID;
	if (result) {
		act_drop(spec->act);
		act_drop(spec->launch);
	}
	return result;
}

/* ---- kernels ---- */

static int put_kernel(const struct target *t, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node_spec spec = { .type = NODE_KERNEL };
	void *unpacked[PARAMETERS];
	struct launch l;

	if (!p || !(p->func || p->kern))
		return SIM_INVALID;
	l = (struct launch){ p->func ? (void *)p->func : (void *)p->kern,
			     { p->gridDimX, p->gridDimY, p->gridDimZ },
			     { p->blockDimX, p->blockDimY, p->blockDimZ },
			     p->sharedMemBytes,
			     p->kernelParams };
	if (!l.args && p->extra)
		l.args = unpack(l.fn, p->extra, unpacked);
	spec.ns = time_of_kernel((uint64_t)l.grid[0] * l.grid[1] * l.grid[2],
				 (uint64_t)l.block[0] * l.block[1] * l.block[2]);
	spec.act = kernel_keep(&l);
	spec.launch = act_keep(spec.act);
	return spec.act ? put(t, &spec) : SIM_NOMEM;
}

/* The first form lacks the last two members, a kernel and a context. */
static int put_kernel_v1(const struct target *t, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS whole = { 0 };

	if (!p)
		return SIM_INVALID;
	memcpy(&whole, p, sizeof(*p));
	return put_kernel(t, &whole);
}

static int get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
	const struct node_spec *spec = graph_spec(node);
	const struct launch *l = spec ? kernel_kept(spec->launch) : NULL;

	if (!out || !spec || spec->type != NODE_KERNEL)
		return SIM_INVALID;
	if (!l)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = (CUDA_KERNEL_NODE_PARAMS_v1){
		(CUfunction)l->fn, l->grid[0],	l->grid[1],	     l->grid[2], l->block[0],
		l->block[1],	   l->block[2], (unsigned)l->shared, l->args,	 NULL
	};
	return SIM_OK;
}

static int get_kernel_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
	CUDA_KERNEL_NODE_PARAMS_v1 plain;
	int result = out ? get_kernel(node, &plain) : SIM_INVALID;

	if (result)
		return result;
	memset(out, 0, sizeof(*out));
	memcpy(out, &plain, sizeof(plain));
	return SIM_OK;
}

#define ADD CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n

DRV_PLAIN(cuGraphAddKernelNode, put_kernel_v1(NEW, p), ADD, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
DRV_PLAIN(cuGraphAddKernelNode_v2, put_kernel(NEW, p), ADD, const CUDA_KERNEL_NODE_PARAMS *p)
DRV_PLAIN(cuGraphKernelNodeSetParams, put_kernel_v1(SET, p), CUgraphNode node,
	  const CUDA_KERNEL_NODE_PARAMS_v1 *p)
DRV_PLAIN(cuGraphKernelNodeSetParams_v2, put_kernel(SET, p), CUgraphNode node,
	  const CUDA_KERNEL_NODE_PARAMS *p)
DRV_PLAIN(cuGraphExecKernelNodeSetParams, put_kernel_v1(SET_EXEC, p), CUgraphExec exec,
	  CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
DRV_PLAIN(cuGraphExecKernelNodeSetParams_v2, put_kernel(SET_EXEC, p), CUgraphExec exec,
	  CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
DRV_PLAIN(cuGraphKernelNodeGetParams, get_kernel(node, p), CUgraphNode node,
	  CUDA_KERNEL_NODE_PARAMS_v1 *p)
DRV_PLAIN(cuGraphKernelNodeGetParams_v2, get_kernel_v2(node, p), CUgraphNode node,
	  CUDA_KERNEL_NODE_PARAMS *p)

/* ---- copies and fills ---- */

static int put_box(const struct target *t, enum node_type type, const struct box *b)
{
	struct node_spec spec = { .type = type, .ns = box_time(b), .act = box_act(b) };

	return spec.act ? put(t, &spec) : SIM_NOMEM;
}

static int put_copy(const struct target *t, const CUDA_MEMCPY3D *c)
{
	struct box b = { 0 };
	int result = c ? box_of_3d(c, &b) : SIM_INVALID;

	if (!result &&
	    (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY))
		b = (struct box){ 0 }; /* arrays have no contents here */
	return result ? result : put_box(t, NODE_MEMCPY, &b);
}

static int put_fill(const struct target *t, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct box b;

	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return SIM_INVALID;
	b = (struct box){ .dst = (void *)p->dst,
			  .dpitch = p->pitch,
			  .width = p->width * p->elementSize,
			  .height = p->height,
			  .depth = 1,
			  .value = p->value,
			  .unit = p->elementSize };
	return put_box(t, NODE_MEMSET, &b);
}

static const struct box *box_at(CUgraphNode node, enum node_type type)
{
	const struct node_spec *spec = graph_spec(node);

	return spec && spec->type == type ? box_of(spec->act) : NULL;
}

static CUmemorytype type_of(const void *p)
{
	return sim_is_device_ptr(p) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

/* Rows of a slice, as CUDA_MEMCPY3D counts them. */
static size_t rows_of(size_t slice, size_t pitch, size_t height)
{
	return pitch && slice ? slice / pitch : height;
}

static int get_copy(CUgraphNode node, CUDA_MEMCPY3D *out)
{
	const struct box *b = box_at(node, NODE_MEMCPY);

	if (!out || !b)
		return SIM_INVALID;
	*out = (CUDA_MEMCPY3D){ .srcMemoryType = type_of(b->src),
				.srcHost = b->src,
				.srcDevice = (CUdeviceptr)b->src,
				.srcPitch = b->spitch ? b->spitch : b->width,
				.srcHeight = rows_of(b->sslice, b->spitch, b->height),
				.dstMemoryType = type_of(b->dst),
				.dstHost = b->dst,
				.dstDevice = (CUdeviceptr)b->dst,
				.dstPitch = b->dpitch ? b->dpitch : b->width,
				.dstHeight = rows_of(b->dslice, b->dpitch, b->height),
				.WidthInBytes = b->width,
				.Height = b->height,
				.Depth = b->depth };
	return SIM_OK;
}

static int get_fill(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
	const struct box *b = box_at(node, NODE_MEMSET);

	if (!out || !b)
		return SIM_INVALID;
	*out = (CUDA_MEMSET_NODE_PARAMS){ (CUdeviceptr)b->dst, b->dpitch, b->value, b->unit,
					  b->width / b->unit,  b->height };
	return SIM_OK;
}

DRV_PLAIN(cuGraphAddMemcpyNode, put_copy(NEW, p), ADD, const CUDA_MEMCPY3D *p, UNUSED CUcontext ctx)
DRV_PLAIN(cuGraphMemcpyNodeSetParams, put_copy(SET, p), CUgraphNode node, const CUDA_MEMCPY3D *p)
DRV_PLAIN(cuGraphExecMemcpyNodeSetParams, put_copy(SET_EXEC, p), CUgraphExec exec, CUgraphNode node,
	  const CUDA_MEMCPY3D *p, UNUSED CUcontext ctx)
DRV_PLAIN(cuGraphMemcpyNodeGetParams, get_copy(node, p), CUgraphNode node, CUDA_MEMCPY3D *p)
DRV_PLAIN(cuGraphAddMemsetNode, put_fill(NEW, p), ADD, const CUDA_MEMSET_NODE_PARAMS *p,
	  UNUSED CUcontext ctx)
DRV_PLAIN(cuGraphMemsetNodeSetParams, put_fill(SET, p), CUgraphNode node,
	  const CUDA_MEMSET_NODE_PARAMS *p)
DRV_PLAIN(cuGraphExecMemsetNodeSetParams, put_fill(SET_EXEC, p), CUgraphExec exec, CUgraphNode node,
	  const CUDA_MEMSET_NODE_PARAMS *p, UNUSED CUcontext ctx)
DRV_PLAIN(cuGraphMemsetNodeGetParams, get_fill(node, p), CUgraphNode node,
	  CUDA_MEMSET_NODE_PARAMS *p)

/* ---- any kind ---- */

static int put_any(const struct target *t, const CUgraphNodeParams *p)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	switch (p ? (int)p->type : -1) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return put_kernel(t, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return put_copy(t, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &p->memset, sizeof(fill));
		return put_fill(t, &fill);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return put(t, &(struct node_spec){ .type = NODE_EMPTY });
	default:
		return p ? CUDA_ERROR_NOT_SUPPORTED : SIM_INVALID;
	}
}

DRV_PLAIN(cuGraphAddNode, put_any(NEW, p), ADD, CUgraphNodeParams *p)
DRV_PLAIN(cuGraphAddNode_v2, put_any(NEW, p), CUgraphNode *node, CUgraph graph,
	  const CUgraphNode *deps, UNUSED const CUgraphEdgeData *edges, size_t n,
	  CUgraphNodeParams *p)
DRV_PLAIN(cuGraphNodeSetParams, put_any(SET, p), CUgraphNode node, CUgraphNodeParams *p)
DRV_PLAIN(cuGraphExecNodeSetParams, put_any(SET_EXEC, p), CUgraphExec exec, CUgraphNode node,
	  CUgraphNodeParams *p)

SIM_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
				      CUgraphExecUpdateResultInfo *info)
{
	int result = graph_exec_update(exec, GRAPH(graph));

	if (info) {
		memset(info, 0, sizeof(*info));
		if (result)
			info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	return DRV(result);
}

SIM_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong,
				   CUgraphExecUpdateResult *why)
{
	CUgraphExecUpdateResultInfo info;
	CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);

	if (wrong)
		*wrong = NULL;
	if (why)
		*why = info.result;
	return result;
}
