/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures of a graph, shared by graph.c, which builds it, and graph_launch.c, which runs it.
 */
#pragma once

#include "work.h"

struct node {
	struct node_spec spec;
	struct node_list before; /* it waits for these */
	struct sim_graph *graph;
	uint64_t end; /* ns from the launch, as last computed */
	size_t place;
	unsigned long mark; /* number of the last search that reached it */
	struct node *next_open;
};

struct sim_graph {
	pthread_mutex_t lock;
	struct node_list nodes; /* after those they wait for, unless edges were added */
	void *exec;		/* the only executable form of a graph with memory nodes */
};

void graph_exec_orphan(void *exec); /* its graph is being destroyed */
struct graph_block *graph_block_keep(struct graph_block *b);
void graph_block_drop(struct graph_block *b);
void graph_memory_refused(const struct node_spec *spec); /* no node was created */
void graph_memory_orphan(const struct sim_graph *g);	 /* it is being destroyed */
/* Reserves memory before a launch with these memory nodes. frees_left: frees memory that the last
 * launch left. SIM_INVALID if a node's memory was not freed, or is not there to free. */
int graph_memory_prepare(const struct node_spec *const *specs, size_t n, bool frees_left);
void graph_memory_node(const struct node_spec *spec); /* in a prepared launch */

void graph_asked(void *node, struct act *launch);
/* Replaces a spec and drops the actions of the old one. */
void spec_exchange(struct node_spec *old, const struct node_spec *with);
bool nodes_append(struct node_list *list, void *node); /* duplicates are allowed */
bool nodes_has(const struct node_list *list, const void *node);
