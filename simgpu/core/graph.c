/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: their nodes, and the nodes that each waits for. Any thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include "graph.h"

#define GRAPH_KIND SIM_KIND('G', 'R', 'F', '1')
#define NODE_KIND  SIM_KIND('N', 'O', 'D', '1')

static unsigned long last_mark;

static struct node *node_of(void *node)
{
	return sim_handle_check(node, NODE_KIND);
}

/* ---- building ---- */

int graph_create(struct sim_graph **out)
{
	struct sim_graph *g = sim_handle(GRAPH_KIND, sizeof(*g));

	if (!g)
		return SIM_NOMEM;
	pthread_mutex_init(&g->lock, NULL);
	*out = g;
	return SIM_OK;
}

struct sim_graph *graph_check(void *handle)
{
	return sim_handle_check(handle, GRAPH_KIND);
}

static void drop_node(struct node *n)
{
	nodes_done(&n->before);
	act_drop(n->spec.act);
	act_drop(n->spec.launch);
	if (n->spec.block)
		graph_block_drop(n->spec.block);
	sim_handle_free(n);
}

int graph_destroy(struct sim_graph *g)
{
	if (!graph_check(g))
		return SIM_BAD_HANDLE;
	if (g->exec)
		graph_exec_orphan(g->exec);
	graph_memory_orphan(g);
	for (size_t i = 0; i < g->nodes.n; i++)
		drop_node(g->nodes.nodes[i]);
	nodes_done(&g->nodes);
	sim_handle_free(g);
	return SIM_OK;
}

int graph_add(struct sim_graph *g, const struct node_spec *spec, void *const *deps, size_t count,
	      void **node)
{
	bool fits = graph_check(g) && (!count || deps);
	struct node *n;

	for (size_t i = 0; i < count && fits; i++)
		fits = node_of(deps[i]);
	n = fits ? sim_handle(NODE_KIND, sizeof(*n)) : NULL;
	if (!n) {
		if (spec->block)
			graph_memory_refused(spec);
		return fits ? SIM_NOMEM : SIM_INVALID;
	}
	n->spec = *spec;
	n->graph = g;
	pthread_mutex_lock(&g->lock);
	fits = nodes_add(&n->before, deps, count) && nodes_append(&g->nodes, n);
	pthread_mutex_unlock(&g->lock);
	if (!fits) {
		n->spec.act = n->spec.launch = NULL;
		drop_node(n);
		return SIM_NOMEM;
	}
	if (node)
		*node = n;
	return SIM_OK;
}

void graph_act(void *node, struct act *act)
{
	act_drop(node_of(node)->spec.act);
	node_of(node)->spec.act = act;
}

void graph_asked(void *node, struct act *launch)
{
	act_drop(node_of(node)->spec.launch);
	node_of(node)->spec.launch = launch;
}

const struct node_spec *graph_spec(void *node)
{
	return node_of(node) ? &node_of(node)->spec : NULL;
}

void spec_exchange(struct node_spec *old, const struct node_spec *with)
{
	act_drop(old->act);
	act_drop(old->launch);
	*old = *with;
}

int graph_set(void *node, const struct node_spec *spec)
{
	struct node *n = node_of(node);

	if (!n || n->spec.type != spec->type)
		return SIM_INVALID;
	spec_exchange(&n->spec, spec);
	return SIM_OK;
}

bool graph_owns(const struct sim_graph *g, void *node)
{
	return node_of(node) && node_of(node)->graph == g;
}

int graph_depend(void *from, void *to)
{
	struct node *a = node_of(from), *b = node_of(to);
	bool fits;

	if (!a || !b || a->graph != b->graph)
		return SIM_INVALID;
	pthread_mutex_lock(&b->graph->lock);
	fits = nodes_add(&b->before, (void *[]){ a }, 1);
	pthread_mutex_unlock(&b->graph->lock);
	return fits ? SIM_OK : SIM_NOMEM;
}

static struct node *meet(struct node *n, unsigned long mark, struct node *open)
{
	if (n->mark == mark)
		return open;
	n->mark = mark;
	n->next_open = open;
	return n;
}

/* Marks these nodes and all that they depend on with the same new mark. */
static unsigned long mark_all(const struct node_list *ends)
{
	unsigned long mark = __atomic_add_fetch(&last_mark, 1, __ATOMIC_RELAXED);
	struct node *open = NULL;

	for (size_t i = 0; i < ends->n; i++)
		open = meet(ends->nodes[i], mark, open);
	while (open) {
		struct node *n = open;

		open = n->next_open;
		for (size_t i = 0; i < n->before.n; i++)
			open = meet(n->before.nodes[i], mark, open);
	}
	return mark;
}

bool graph_leads(const struct node_list *ends, const struct node_list *nodes)
{
	unsigned long mark = mark_all(ends);

	for (size_t i = 0; i < nodes->n; i++)
		if (((struct node *)nodes->nodes[i])->mark != mark)
			return false;
	return true;
}

/* ---- reading ---- */

/* Like cudaGraphGetNodes: returns the count, or fills an array of *n entries; surplus entries
 * become NULL. */
static int give(const struct node_list *list, void **nodes, size_t *n)
{
	if (!n)
		return SIM_INVALID;
	if (!nodes) {
		*n = list->n;
		return SIM_OK;
	}
	for (size_t i = 0; i < *n; i++)
		nodes[i] = i < list->n ? list->nodes[i] : NULL;
	if (*n > list->n)
		*n = list->n;
	return SIM_OK;
}

int graph_nodes(struct sim_graph *g, void **nodes, size_t *n)
{
	return graph_check(g) ? give(&g->nodes, nodes, n) : SIM_INVALID;
}

int graph_roots(struct sim_graph *g, void **nodes, size_t *n)
{
	struct node_list roots = { 0 };
	int result;

	if (!graph_check(g))
		return SIM_INVALID;
	for (size_t i = 0; i < g->nodes.n; i++)
		if (!((struct node *)g->nodes.nodes[i])->before.n)
			nodes_append(&roots, g->nodes.nodes[i]);
	result = give(&roots, nodes, n);
	nodes_done(&roots);
	return result;
}

int graph_before(void *node, void **nodes, size_t *n)
{
	return node_of(node) ? give(&node_of(node)->before, nodes, n) : SIM_INVALID;
}

int graph_after(void *node, void **nodes, size_t *n)
{
	struct node *from = node_of(node);
	struct node_list after = { 0 };
	int result;

	if (!from)
		return SIM_INVALID;
	for (size_t i = 0; i < from->graph->nodes.n; i++)
		if (nodes_has(&((struct node *)from->graph->nodes.nodes[i])->before, from))
			nodes_append(&after, from->graph->nodes.nodes[i]);
	result = give(&after, nodes, n);
	nodes_done(&after);
	return result;
}

int graph_edges(struct sim_graph *g, void **from, void **to, size_t *n)
{
	struct node_list a = { 0 }, b = { 0 };
	size_t room = n ? *n : 0;
	int result;

	if (!graph_check(g) || !n || !from != !to)
		return SIM_INVALID;
	for (size_t i = 0; i < g->nodes.n; i++) {
		struct node *node = g->nodes.nodes[i];

		for (size_t j = 0; j < node->before.n; j++)
			if (!nodes_append(&a, node->before.nodes[j]) || !nodes_append(&b, node))
				break;
	}
	result = give(&a, from, n);
	if (to)
		give(&b, to, &room);
	nodes_done(&a);
	nodes_done(&b);
	return result;
}

int graph_node_type(void *node, int *type)
{
	struct node *n = node_of(node);

	if (!n || !type)
		return SIM_INVALID;
	*type = n->spec.type;
	return SIM_OK;
}

static const char *type_name(enum node_type type)
{
	static const char *const names[] = { "KERNEL", "MEMCPY", "MEMSET",    "HOST",
					     "GRAPH",  "EMPTY",	 "WAIT",      "EVENT_RECORD",
					     NULL,     NULL,	 "MEM_ALLOC", "MEM_FREE" };

	return (size_t)type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type]
									      : "OTHER";
}

/* Writes the graph in Graphviz's language. */
int graph_draw(struct sim_graph *g, const char *path)
{
	FILE *f = graph_check(g) && path ? fopen(path, "w") : NULL;

	if (!f)
		return graph_check(g) && path ? ERR_OPERATING_SYSTEM : SIM_INVALID;
	fprintf(f, "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" "
		   "graph[style=\"dashed\"];\n");
	for (size_t i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.nodes[i];

		n->place = i;
		fprintf(f, "\"graph_1_node_%zu\"[label=\"%zu %s\\n%.1f us\"];\n", i, i,
			type_name(n->spec.type), (double)n->spec.ns / 1000);
	}
	for (size_t i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.nodes[i];

		for (size_t j = 0; j < n->before.n; j++)
			fprintf(f, "\"graph_1_node_%zu\" -> \"graph_1_node_%zu\";\n",
				((struct node *)n->before.nodes[j])->place, i);
	}
	fprintf(f, "}\n}\n");
	return fclose(f) ? ERR_OPERATING_SYSTEM : SIM_OK;
}
