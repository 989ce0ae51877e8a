/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of graphs. An executable graph is a copy of the nodes' specs, each with its end in ns
 * from the launch. A launch calls host functions, records events, allocates and frees memory
 * (graph_memory.c), runs the other nodes' actions (acts.c), and takes the graph's time. Any thread.
 */
#include <stdlib.h>
#include "clock.h"
#include "graph.h"
#include "memory.h"
#include "pollers.h"

#define EXEC_KIND  SIM_KIND('G', 'E', 'X', '1')
#define NODE_BYTES 10240
#define FREES_LEFT 1 /* AutoFreeOnLaunch */

struct exec {
	uint64_t ns;
	int device;
	unsigned int generation; /* of the device's primary context */
	size_t bytes;
	bool frees_left;
	struct sim_graph *graph;	 /* if it has memory nodes and still exists */
	const struct node_spec **memory; /* specs of these nodes, in order */
	size_t memory_n;
	size_t n;
	struct {
		void *node; /* from which the step was made */
		struct node_spec spec;
		uint64_t end;
	} steps[];
};

/* End of a node, in ns from the launch. The nodes it waits for come earlier in the list, at least
 * in a recorded graph, so that their ends are known. */
static uint64_t end_of(struct node *n)
{
	uint64_t begin = 0;

	for (size_t i = 0; i < n->before.n; i++) {
		const struct node *other = n->before.nodes[i];

		begin = other->end > begin ? other->end : begin;
	}
	return begin + n->spec.ns;
}

/* The driver keeps about 10 KiB of device memory for each node (NVIDIA/cccl, pull request 3768), in
 * pages that all graphs share. hold() is false if there is no room. */
static size_t held[SIM_MAX_DEVICES];
static unsigned int generations[SIM_MAX_DEVICES];

static bool hold(int device, size_t more, size_t less)
{
	size_t before, after;
	bool done = true;

	pthread_mutex_lock(&memory_lock);
	before = sim_whole_pages(held[device]);
	after = sim_whole_pages(held[device] + more - less);
	if (after > before)
		done = memory_charge(device, after - before);
	else
		memory_uncharge(device, before - after);
	held[device] += done ? more - less : 0;
	pthread_mutex_unlock(&memory_lock);
	return done;
}

void graphs_reset(int device)
{
	memory_uncharge(device, sim_whole_pages(held[device]));
	held[device] = 0;
	generations[device]++;
}

static bool is_memory(const struct node_spec *spec)
{
	return spec->block;
}

/* A graph with memory nodes has one executable form at most. */
static bool own_memory(struct exec *e, struct sim_graph *g)
{
	size_t count = 0;

	for (size_t i = 0; i < g->nodes.n; i++)
		count += is_memory(&((struct node *)g->nodes.nodes[i])->spec);
	if (!count)
		return true;
	e->memory = calloc(count, sizeof(e->memory[0]));
	if (!e->memory)
		return false;
	e->graph = g;
	g->exec = e;
	return true;
}

void graph_exec_orphan(void *exec)
{
	((struct exec *)exec)->graph = NULL;
}

static struct node_spec keep_parameters(const struct node_spec *spec)
{
	act_keep(spec->act);
	act_keep(spec->launch);
	return *spec;
}

static void add_step(struct exec *e, struct node *n)
{
	struct node_spec *spec = &e->steps[e->n].spec;

	n->end = end_of(n);
	e->steps[e->n].node = n;
	*spec = keep_parameters(&n->spec);
	if (is_memory(spec)) {
		graph_block_keep(spec->block);
		e->memory[e->memory_n++] = spec;
	}
	e->steps[e->n++].end = n->end;
	e->ns = n->end > e->ns ? n->end : e->ns;
}

int graph_instantiate(void **exec, struct sim_graph *g, unsigned long long flags)
{
	struct exec *e;

	if (!exec || !graph_check(g) || g->exec)
		return SIM_INVALID;
	e = sim_handle(EXEC_KIND, sizeof(*e) + g->nodes.n * sizeof(e->steps[0]));
	if (!e)
		return SIM_NOMEM;
	e->device = sim_device();
	e->generation = generations[e->device];
	e->frees_left = flags & FREES_LEFT;
	e->bytes = g->nodes.n * NODE_BYTES;
	if (!hold(e->device, e->bytes, 0)) {
		sim_handle_free(e);
		return SIM_NOMEM;
	}
	if (!own_memory(e, g)) {
		hold(e->device, 0, e->bytes);
		sim_handle_free(e);
		return SIM_NOMEM;
	}
	while (e->n < g->nodes.n)
		add_step(e, g->nodes.nodes[e->n]);
	*exec = e;
	return SIM_OK;
}

int graph_exec_destroy(void *exec)
{
	struct exec *e = sim_handle_check(exec, EXEC_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	for (size_t i = 0; i < e->memory_n; i++)
		graph_block_drop(e->memory[i]->block);
	free(e->memory);
	for (size_t i = 0; i < e->n; i++)
		spec_exchange(&e->steps[i].spec, &(struct node_spec){ 0 });
	if (e->graph)
		e->graph->exec = NULL;
	if (e->generation == generations[e->device])
		hold(e->device, 0, e->bytes);
	sim_handle_free(e);
	return SIM_OK;
}

int graph_exec_set(void *exec, void *node, const struct node_spec *spec)
{
	struct exec *e = sim_handle_check(exec, EXEC_KIND);

	for (size_t i = 0; e && i < e->n; i++)
		if (e->steps[i].node == node && e->steps[i].spec.type == spec->type) {
			spec_exchange(&e->steps[i].spec, spec);
			return SIM_OK;
		}
	return SIM_INVALID;
}

int graph_exec_update(void *exec, struct sim_graph *g)
{
	struct exec *e = sim_handle_check(exec, EXEC_KIND);

	if (!e || !graph_check(g))
		return SIM_INVALID;
	if (e->n != g->nodes.n)
		return ERR_UPDATE;
	for (size_t i = 0; i < e->n; i++)
		if (e->steps[i].spec.type != ((struct node *)g->nodes.nodes[i])->spec.type ||
		    is_memory(&e->steps[i].spec))
			return ERR_UPDATE;
	for (size_t i = 0; i < e->n; i++) {
		struct node_spec spec = keep_parameters(&((struct node *)g->nodes.nodes[i])->spec);

		spec_exchange(&e->steps[i].spec, &spec);
	}
	return SIM_OK;
}

static void record(void *event, struct sim_stream *s, uint64_t before_end)
{
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!e || !clock_on())
		return;
	pollers_forget(e);
	e->recorded = clock_end(s) - before_end;
}

int graph_launch(void *exec, void *stream)
{
	struct exec *e = sim_handle_check(exec, EXEC_KIND);
	struct sim_stream *s = stream_find(stream);
	int result;

	if (!e || !s)
		return SIM_BAD_HANDLE;
	result = e->memory_n ? graph_memory_prepare(e->memory, e->memory_n, e->frees_left) : SIM_OK;
	if (result)
		return result;
	clock_work(s, &(struct work){ .ns = e->ns });
	for (size_t i = 0; i < e->n; i++) {
		const struct node_spec *spec = &e->steps[i].spec;

		if (spec->type == NODE_HOST && spec->fn)
			spec->fn(spec->data);
		else if (spec->type == NODE_EVENT_RECORD)
			record((void *)spec->addr, s, e->ns - e->steps[i].end);
		else if (is_memory(spec))
			graph_memory_node(spec);
		else if (spec->act)
			spec->act->run(spec->act, stream);
	}
	return SIM_OK;
}
