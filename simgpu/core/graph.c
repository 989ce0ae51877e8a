/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: a list of nodes, of which only the host functions and the memory nodes do anything when
 * the graph is launched. An executable graph is a copy of the list.
 */
#include <stdlib.h>
#include <string.h>
#include "core.h"

#define GRAPH_KIND SIM_KIND('G', 'R', 'F', '1')
#define EXEC_KIND  SIM_KIND('G', 'E', 'X', '1')
#define NODE_KIND  SIM_KIND('N', 'O', 'D', '1')

struct node {
	enum node_type type;
	uintptr_t addr;
	void (*fn)(void *);
	void *data;
};

struct sim_graph {
	pthread_mutex_t lock;
	struct node **nodes;
	size_t n, room;
};

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

static void drop_nodes(struct sim_graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		sim_handle_free(g->nodes[i]);
	free(g->nodes);
}

int graph_destroy(struct sim_graph *g)
{
	if (!graph_check(g))
		return SIM_BAD_HANDLE;
	drop_nodes(g);
	sim_handle_free(g);
	return SIM_OK;
}

static bool grow(struct sim_graph *g)
{
	size_t room = g->room ? 2 * g->room : 64;
	struct node **nodes;

	if (g->n < g->room)
		return true;
	nodes = realloc(g->nodes, room * sizeof(*nodes));
	if (!nodes)
		return false;
	g->nodes = nodes;
	g->room = room;
	return true;
}

int graph_add(struct sim_graph *g, enum node_type type, uintptr_t addr, void *fn, void *data,
	      void **node)
{
	struct node *n;
	bool fits;

	if (!graph_check(g))
		return SIM_INVALID;
	n = sim_handle(NODE_KIND, sizeof(*n));
	if (!n)
		return SIM_NOMEM;
	*n = (struct node){ type, addr, (void (*)(void *))fn, data };
	pthread_mutex_lock(&g->lock);
	fits = grow(g);
	if (fits)
		g->nodes[g->n++] = n;
	pthread_mutex_unlock(&g->lock);
	if (!fits) {
		sim_handle_free(n);
		return SIM_NOMEM;
	}
	if (node)
		*node = n;
	return SIM_OK;
}

/* As cudaGraphGetNodes: how many there are, or that many of them; the rest of the array is NULL. */
int graph_nodes(struct sim_graph *g, void **nodes, size_t *n)
{
	if (!graph_check(g) || !n)
		return SIM_INVALID;
	if (!nodes) {
		*n = g->n;
		return SIM_OK;
	}
	for (size_t i = 0; i < *n; i++)
		nodes[i] = i < g->n ? g->nodes[i] : NULL;
	if (*n > g->n)
		*n = g->n;
	return SIM_OK;
}

int graph_node_type(void *node, int *type)
{
	struct node *n = sim_handle_check(node, NODE_KIND);

	if (!n || !type)
		return SIM_INVALID;
	*type = n->type;
	return SIM_OK;
}

int graph_instantiate(void **exec, struct sim_graph *g)
{
	struct sim_graph *e;

	if (!exec || !graph_check(g))
		return SIM_INVALID;
	e = sim_handle(EXEC_KIND, sizeof(*e));
	if (!e)
		return SIM_NOMEM;
	e->nodes = calloc(g->n + 1, sizeof(*e->nodes));
	for (size_t i = 0; e->nodes && i < g->n; i++) {
		struct node *n = sim_handle(NODE_KIND, sizeof(*n));

		if (!n)
			break;
		*n = *g->nodes[i];
		e->nodes[e->n++] = n;
	}
	*exec = e;
	return SIM_OK;
}

int graph_exec_destroy(void *exec)
{
	struct sim_graph *e = sim_handle_check(exec, EXEC_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	drop_nodes(e);
	sim_handle_free(e);
	return SIM_OK;
}

int graph_launch(void *exec)
{
	struct sim_graph *e = sim_handle_check(exec, EXEC_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	for (size_t i = 0; i < e->n; i++)
		if (e->nodes[i]->type == NODE_HOST && e->nodes[i]->fn)
			e->nodes[i]->fn(e->nodes[i]->data);
	return SIM_OK;
}
