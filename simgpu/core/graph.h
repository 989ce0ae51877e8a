/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as graph.c, which makes it, and graph_launch.c, which runs it, see it.
 */
#pragma once

#include "work.h"

struct node {
	struct node_spec spec;
	struct node_list before; /* it waits for these */
	struct sim_graph *graph;
	uint64_t end; /* as worked out last */
	size_t place;
	unsigned long mark; /* the last search that met it */
	struct node *next_open;
};

struct sim_graph {
	pthread_mutex_t lock;
	struct node_list
		nodes; /* none stands before one that it waits for, unless edges came later */
	void *exec;    /* the one executable form that a graph with memory may have */
};

void graph_exec_orphan(void *exec); /* its graph is being destroyed */
struct graph_block *graph_block_keep(struct graph_block *b);
void graph_block_drop(struct graph_block *b);
void graph_memory_refused(const struct node_spec *spec); /* no node was made of it */
void graph_memory_orphan(const struct sim_graph *g);	 /* it is being destroyed */
/* Before a launch: its memory nodes in their order. frees_left: what the last launch left is freed.
 */
int graph_memory_prepare(const struct node_spec *const *specs, size_t n, bool frees_left);
void graph_memory_node(const struct node_spec *spec); /* in a launch that was prepared */

void graph_asked(void *node, struct act *launch);
/* Drops what a node did before. */
void spec_exchange(struct node_spec *old, const struct node_spec *with);
bool nodes_append(struct node_list *list, void *node); /* without looking whether it is there */
bool nodes_has(const struct node_list *list, const void *node);
