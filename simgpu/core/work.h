/* SPDX-License-Identifier: Apache-2.0
 *
 * Work: streams, events, recordings, graphs and launches. Results are the ints of sim.h.
 */
#pragma once

#include "core.h"

struct sim_graph;
struct sim_stream;
struct sim_event;
struct capture {
	unsigned long long id;
	struct sim_graph *graph;
	struct sim_stream *origin;
	int mode;
	pid_t thread;
	bool own_graph;		      /* the caller created the graph */
	const struct node_list *ends; /* nodes that the stream's next work depends on */
};

int stream_create(void **out, unsigned int flags, int priority);
int stream_destroy(void *stream);
int stream_sync(void *stream);
int stream_query(void *stream);
int stream_device(void *stream, int *device);
int stream_flags(void *stream, unsigned int *flags);
int stream_priority(void *stream, int *priority);
int stream_id(void *stream, unsigned long long *id);
int stream_wait(void *stream, void *event);
void stream_pends(void *stream, uint64_t number); /* waits for that pending work */
int stream_valid(void *stream);
struct sim_ctx *stream_ctx(void *stream);
int device_sync(int device);

int capture_begin(void *stream, struct sim_graph *graph, int mode);
int capture_end(void *stream, struct sim_graph **out);
int capture_info(void *stream, int *status, struct capture *out);
/* Nodes that the next work depends on, and the data of those edges. Both stay valid while the
 * recording lasts. */
void capture_tell(const struct capture *c, const void **nodes, const void **edges, size_t *n);
int capture_thread_mode(int *mode);
/* Error of a call that is forbidden while a graph is recorded, or 0. The recording is then invalid,
 * as on a real device. */
int capture_forbids(void);
int capture_legacy(void *stream); /* error of legacy-stream work while others record */

int event_create(void **out, unsigned int flags);
int event_destroy(void *event);
int event_record(void *event, void *stream);
int event_record_external(void *event, void *stream); /* a node, if the stream records */
int event_query(void *event);
int event_sync(void *event);
int event_elapsed(float *ms, void *start, void *end);
int event_share(void *event, void *handle64);
int event_open(void **out, const void *handle64);

/* An action that a node performs at each launch of its graph: acts.c. */
struct act {
	unsigned int refs;
	void (*run)(struct act *act, void *stream);
};
struct act *act_new(size_t bytes, void (*run)(struct act *act, void *stream)); /* zeroed, or NULL */
struct act *act_keep(struct act *a);
void act_drop(struct act *a);
struct act *act_forget(const uintptr_t *words, size_t n); /* forgets those that are addresses */
struct act *act_launch(void **args);			  /* for an uncomputed kernel */
/* Gives an action to the stream's last recorded node, which owns it. NULL: it does nothing. */
void capture_act(void *stream, struct act *act);
void graph_act(void *node, struct act *act);
void capture_launch(void *stream, struct act *launch); /* the same for a launch request */

/* Values of cudaGraphNodeType. */
enum node_type {
	NODE_KERNEL = 0,
	NODE_MEMCPY = 1,
	NODE_MEMSET = 2,
	NODE_HOST = 3,
	NODE_GRAPH = 4,
	NODE_EMPTY = 5,
	NODE_WAIT_EVENT = 6,
	NODE_EVENT_RECORD = 7,
	NODE_MEM_ALLOC = 10,
	NODE_MEM_FREE = 11,
};
struct graph_block;
struct node_spec {
	enum node_type type;
	uintptr_t addr;		   /* of memory, or an event */
	struct graph_block *block; /* allocated or freed by the node; graph_memory.c */
	void (*fn)(void *);
	void *data;
	uint64_t ns;
	struct act *act;
	struct act *launch; /* a kernel's launch request: ../kernels/recorded.c */
};
/* A list of nodes that others wait for. */
struct node_list {
	void **nodes;
	size_t n, room;
};
bool stream_captures(void *stream, const struct node_spec *spec);
/* Both are true if the stream is being captured: a node was recorded, and the caller does nothing
 * now. Otherwise only stream_work() puts the work on the stream. */
bool stream_work(void *stream, enum node_type type, uint64_t ns);
int capture_depend(void *stream, void *const *nodes, size_t n, bool instead);

bool nodes_add(struct node_list *list, void *const *nodes, size_t n); /* adds the missing nodes */
void nodes_done(struct node_list *list);
int graph_create(struct sim_graph **out);
struct sim_graph *graph_check(void *handle);
int graph_destroy(struct sim_graph *g);
int graph_add(struct sim_graph *g, const struct node_spec *spec, void *const *deps, size_t n,
	      void **node);
/* A node that allocates or frees memory, for graph_add or a recording, which owns its reference. */
int graph_allocates(struct sim_graph *g, int device, size_t bytes, struct node_spec *out);
int graph_frees(struct sim_graph *g, uintptr_t addr, struct node_spec *out);
bool graph_owns(const struct sim_graph *g, void *node);
int graph_depend(void *from, void *to); /* `to` waits for `from` */
bool graph_leads(const struct node_list *ends, const struct node_list *nodes); /* all ancestors? */
int graph_nodes(struct sim_graph *g, void **nodes, size_t *n);
int graph_roots(struct sim_graph *g, void **nodes, size_t *n);
int graph_edges(struct sim_graph *g, void **from, void **to, size_t *n);
int graph_before(void *node, void **nodes, size_t *n);
int graph_after(void *node, void **nodes, size_t *n);
int graph_draw(struct sim_graph *g, const char *path);
int graph_instantiate(void **exec, struct sim_graph *g, unsigned long long flags);
int graph_exec_destroy(void *exec);
int graph_launch(void *exec, void *stream);
int graph_node_type(void *node, int *type);
/* A node's spec; NULL if the handle is no node. graph_set() replaces it and owns the new actions;
 * graph_exec_set() replaces it in an executable graph only. */
const struct node_spec *graph_spec(void *node);
int graph_set(void *node, const struct node_spec *spec);
int graph_exec_set(void *exec, void *node, const struct node_spec *spec);
/* Gives each node of an executable graph the spec of its counterpart in another graph of the same
 * form; ERR_UPDATE if the forms differ. */
int graph_exec_update(void *exec, struct sim_graph *g);

/* ---- launch.c ---- */
int launch_kernel(void *stream, void **args, unsigned int grid, unsigned int block, size_t shared);
/* The same with a known duration. */
int launch_kernel_for(void *stream, void **args, unsigned int grid, unsigned int block,
		      size_t shared, uint64_t ns);
int launch_host(void *stream, void (*fn)(void *), void *data);
int occupancy(int *blocks, int threads, size_t shared);
