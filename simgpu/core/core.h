/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime's and the driver's functions share beyond sim.h: contexts, blocks of device
 * memory, host ranges, pools, streams and graphs. Results are the ints of sim.h.
 */
#ifndef SIMGPU_CORE_H
#define SIMGPU_CORE_H

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include "sim.h"
#include "slots.h"

enum {
	ERR_DEINITIALIZED = 4,
	ERR_INVALID_CONTEXT = 201,
	ERR_CONTEXT_IN_USE = 216,
	ERR_OPERATING_SYSTEM = 304,
	ERR_PEER_ALREADY = 704,
	ERR_PEER_NOT_ENABLED = 705,
	ERR_HOST_REGISTERED = 712,
	ERR_HOST_NOT_REGISTERED = 713,
	ERR_ILLEGAL_STATE = 401,
	ERR_CAPTURE_UNSUPPORTED = 900,
	ERR_CAPTURE_INVALIDATED = 901,
	ERR_CAPTURE_MERGE = 902,
	ERR_CAPTURE_UNMATCHED = 903,
	ERR_CAPTURE_UNJOINED = 904,
	ERR_CAPTURE_IMPLICIT = 906,
	ERR_CAPTURE_WRONG_THREAD = 908,
};

/* gettid() came with glibc 2.30. */
static inline pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* ---- cards.c ---- */
bool card_known(void);
/* The card that SIMGPU_CARD would name, or (spec NULL) the ith of the table; false: there is none.
 * The name of one that is NAME=SIZE lasts until the next. */
bool card_find(const char *spec, size_t i, struct sim_card *out);

/* ---- device.c: initialisation, contexts, the thread's current one ---- */
struct sim_ctx {
	uint32_t kind;
	int device;
	bool primary, active;
	unsigned int flags, refs;
	uint64_t id;
	unsigned int sms; /* it owns so many multiprocessors and no memory; 0: the card */
};

int device_physical_count(void);		 /* whatever CUDA_VISIBLE_DEVICES says */
int device_physical(int ordinal);		 /* which of them the program calls so */
int device_by_name(const char *s, int physical); /* "1" or "GPU-uuid", ended by a comma; or -1 */
int sim_init(void); /* as cuInit: 0, 3 in a forked child, 100 without a device */
bool sim_is_init(void);
/* Prologue of runtime calls that need a device: initialises, makes the current device's primary
 * context. */
int sim_enter(void);
/* Prologue of driver calls: 3 before cuInit, 201 without a current context. */
int sim_enter_driver(void);
struct sim_ctx *ctx_current(void); /* may be NULL */
struct sim_ctx *ctx_primary(int device);
struct sim_ctx *ctx_check(void *handle); /* NULL if it is not a context */
struct sim_ctx *ctx_create(int device, unsigned int flags);
struct sim_ctx *ctx_create_part(int device, unsigned int sms); /* within the primary one */
void ctx_destroy(struct sim_ctx *ctx);
int ctx_activate(int device);	 /* the primary context takes its memory */
void ctx_deactivate(int device); /* and gives it back; memory_lock held */
void ctx_set(struct sim_ctx *ctx);
int ctx_push(struct sim_ctx *ctx);
int ctx_pop(struct sim_ctx **ctx);
int device_attribute(int *value, int attribute, int device);
/* Of physical devices. */
void device_bus_id(char *s, size_t n, int physical);
void device_uuid(unsigned char *uuid, int physical);
void device_uuid_text(char *s, size_t n, int physical);

/* ---- space.c ---- */
/* A span of device memory cut into pieces: a page of small allocations, or what a pool has taken
 * from the device. */
struct arena {
	struct slots slots;
	uintptr_t base;
	size_t pages, piece;
	int device;
	void *pool;
	struct arena *next, *prev;
};

struct block {
	uintptr_t base;
	size_t bytes;
	int device;
	struct arena *arena; /* NULL: whole pages */
};

extern pthread_mutex_t memory_lock; /* protects what follows, pools and VMM */
int memory_init(void);
bool memory_charge(int device, size_t bytes);
void memory_uncharge(int device, size_t bytes);
size_t memory_used(int device);
/* All with memory_lock held. */
uintptr_t pages_take(int device, size_t pages, uint64_t bytes); /* charged; 0 if full */
void pages_give(uintptr_t base);
struct arena *arena_new(int device, size_t pages, size_t piece, void *pool);
void arena_drop(struct arena *a);
uintptr_t arena_take(struct arena *a, size_t bytes); /* 0: no room */
size_t arena_give(struct arena *a, uintptr_t addr);  /* the bytes that are free again */
bool space_block(uintptr_t addr, struct block *out); /* below vmm_base() */
uintptr_t space_empty(int device, size_t *bytes);    /* all its pages are free: its stretch */
/* Without the lock. */
uintptr_t memory_space(size_t *bytes); /* of all devices; 0: there is none yet */
uintptr_t vmm_base(void);
size_t vmm_pages(void);

/* ---- memory.c ---- */
bool block_find(uintptr_t addr, struct block *out); /* memory_lock held */
/* These lock themselves. */
int memory_alloc(int device, uintptr_t *out, size_t bytes);
int memory_free(uintptr_t addr);
void memory_reset(int device); /* frees everything on the device, and its primary context */

/* ---- vmm.c ---- */
bool vmm_mapping(uintptr_t addr, struct block *out); /* that holds an address; memory_lock held */
int vmm_create(void **handle, size_t bytes, int device, bool on_host, const void *prop);
int vmm_release(void *handle);
int vmm_retain(void **handle, uintptr_t addr);
const void *vmm_properties(void *handle);
int vmm_reserve(uintptr_t *addr, size_t bytes, size_t align, uintptr_t hint);
int vmm_unreserve(uintptr_t addr, size_t bytes);
int vmm_map(uintptr_t addr, size_t bytes, size_t offset, void *handle);
int vmm_unmap(uintptr_t addr, size_t bytes);
int vmm_set_access(uintptr_t addr, size_t bytes, int device, int access);
int vmm_get_access(uintptr_t addr, int device, int *access);
int vmm_share(int *fd, void *handle); /* as a file descriptor */
int vmm_import(void **handle, int fd);

/* ---- host.c: pinned, registered and managed host memory ---- */
enum host_kind { HOST_PINNED = 1, HOST_REGISTERED, HOST_MANAGED };
struct host_range {
	uintptr_t base;
	size_t bytes;
	enum host_kind kind;
	unsigned int flags;
	int device;
	size_t charged;
};
int host_alloc(void **ptr, size_t bytes, unsigned int flags, enum host_kind kind);
int host_free(void *ptr, enum host_kind kind);
int host_register(void *ptr, size_t bytes, unsigned int flags);
int host_unregister(void *ptr);
bool host_find(const void *ptr, struct host_range *out);

/* ---- contents.c ---- */
/* Assumed values count as known: that masks are all true, that choices are spread evenly. What a
 * kernel makes of known values is known, and assumed if any that it has looked at was. */
enum contents_state {
	CONTENTS_UNKNOWN,
	CONTENTS_GUESS,
	CONTENTS_ALL_TRUE,
	CONTENTS_EVEN,
	CONTENTS_KNOWN
};
void contents_begin(void);	 /* this thread comes to the next kernel */
void contents_assume(int state); /* it has looked at such a value, or makes one */
/* A number (of up to 16 bytes) of what begins at `base`; false if it is not known, but a guess or
 * zero. */
bool contents_look(void *dst, const void *base, size_t offset, size_t bytes);
void contents_write(void *dst, const void *src, size_t bytes, bool known);
/* Any range: data (zero where it is unknown), and of each byte what is known of it. */
void contents_read(const void *src, void *data, unsigned char *states, size_t bytes);
void contents_store(void *dst, const void *data, const unsigned char *states, size_t bytes);
struct pending;
/* What is still wanted of the result of such work (pending.h); `at`: from its base. */
void contents_result(const struct pending *p, size_t at, const void *data,
		     const unsigned char *states, size_t bytes);
void contents_forget(uintptr_t addr, size_t bytes); /* it was written, with what is not known */
void contents_from_host(uintptr_t dst, const void *src, size_t bytes);
int contents_least(uintptr_t addr, size_t bytes); /* what is known of the byte least known */
int contents_to_host(void *dst, uintptr_t src, size_t bytes);
void contents_on_device(uintptr_t dst, uintptr_t src, size_t bytes);
void contents_fill(uintptr_t dst, uint32_t pattern, size_t bytes); /* as struct extent has it */
bool contents_any(void);
void contents_drop(uintptr_t base, size_t bytes); /* memory was freed */
/* The next stretch of [base + *at, base + bytes) in which something may be known: sets its offset
 * and length; false if there is none. */
bool contents_next(const void *base, size_t bytes, size_t *at, size_t *length);
/* arguments.c */
void contents_launch(void **args);		    /* a kernel takes these arguments */
void contents_scan(const void *data, size_t bytes); /* or these packed ones */
void contents_wipe(void);			    /* after a kernel that was computed */
size_t contents_reach(const void *p); /* bytes up to the end of this thread's stack; 0: not on it */
/* Arguments that were kept are taken for a part of it, until it is said that there are none. */
void contents_kept(const void *from, size_t bytes);
size_t arguments_addresses(void **args, uintptr_t *out, size_t most); /* in the device's memory */

/* ---- pools.c ---- */
struct sim_pool;
struct sim_pool *pool_default(int device);
struct sim_pool *pool_current(int device);
int pool_set_current(int device, struct sim_pool *pool);
int pool_create(struct sim_pool **out, int device, size_t max_size);
int pool_destroy(struct sim_pool *pool);
struct sim_pool *pool_check(void *handle);
int pool_alloc(struct sim_pool *pool, uintptr_t *out, size_t bytes);
void pool_block_free(struct arena *a, uintptr_t addr); /* memory_lock held */
int pool_trim(struct sim_pool *pool, size_t keep);
int pool_get(struct sim_pool *pool, int attribute, void *value);
int pool_set(struct sim_pool *pool, int attribute, const void *value);
int pool_device(const struct sim_pool *pool);
void pools_sync(int device); /* a synchronization: what is over the thresholds goes back */
void pools_reset(int device);
bool pools_release(
	int device); /* memory_lock held: gives back all that is unused; was there any? */

/* ---- stream_table.c, stream.c, event.c, stream_capture.c, graph.c, graph_launch.c ---- */
struct sim_graph;
struct sim_stream;
struct sim_event;
struct capture {
	unsigned long long id;
	struct sim_graph *graph;
	struct sim_stream *origin;
	int mode;
	pid_t thread;
	bool own_graph;		      /* given by the caller, not made by us */
	const struct node_list *ends; /* what the stream's next work waits for */
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
void stream_pends(void *stream, uint64_t number); /* until that work ends; pending.h */
int stream_valid(void *stream);
struct sim_ctx *stream_ctx(void *stream);
int device_sync(int device);

int capture_begin(void *stream, struct sim_graph *graph, int mode);
int capture_end(void *stream, struct sim_graph **out);
int capture_info(void *stream, int *status, struct capture *out);
/* What its next work waits for, with the edges' data: one list for as long as it records. */
void capture_tell(const struct capture *c, const void **nodes, const void **edges, size_t *n);
int capture_thread_mode(int *mode);
/* 0, or the error of a call that may not be made while a graph is recorded (and the recording is
 * then spoilt, as on a real device). */
int capture_forbids(void);
int capture_legacy(void *stream); /* work on the default stream while others record */

int event_create(void **out, unsigned int flags);
int event_destroy(void *event);
int event_record(void *event, void *stream);
int event_record_external(void *event, void *stream); /* a node, where the stream is recorded */
int event_query(void *event);
int event_sync(void *event);
int event_elapsed(float *ms, void *start, void *end);
int event_share(void *event, void *handle64);
int event_open(void **out, const void *handle64);

/* What a node does whenever its graph is launched: acts.c. */
struct act {
	unsigned int refs;
	void (*run)(struct act *act, void *stream);
};
struct act *act_new(size_t bytes, void (*run)(struct act *act, void *stream)); /* zeroed, or NULL */
struct act *act_keep(struct act *a);
void act_drop(struct act *a);
struct act *act_forget(const uintptr_t *words, size_t n); /* those of them that are addresses */
struct act *act_launch(void **args);			  /* of a kernel that is not computed */
/* Of the node that was recorded on this stream last. Takes it over; NULL: it does nothing. */
void capture_act(void *stream, struct act *act);
void graph_act(void *node, struct act *act);

/* Work put on a stream; a capturing stream gets a node instead (returns true: do nothing now). */
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
struct node_spec {
	enum node_type type;
	uintptr_t addr; /* of memory, or an event */
	void (*fn)(void *);
	void *data;
	uint64_t ns;
	struct act *act;
};
/* A list of nodes that others wait for. */
struct node_list {
	void **nodes;
	size_t n, room;
};
bool stream_captures(void *stream, const struct node_spec *spec);
/* The same for work of so long; what is not recorded is put on the stream. */
bool stream_work(void *stream, enum node_type type, uint64_t ns);
int capture_depend(void *stream, void *const *nodes, size_t n, bool instead);

bool nodes_add(struct node_list *list, void *const *nodes, size_t n); /* those it lacks */
void nodes_done(struct node_list *list);
int graph_create(struct sim_graph **out);
struct sim_graph *graph_check(void *handle);
int graph_destroy(struct sim_graph *g);
int graph_add(struct sim_graph *g, const struct node_spec *spec, void *const *deps, size_t n,
	      void **node);
bool graph_owns(const struct sim_graph *g, void *node);
int graph_depend(void *from, void *to); /* `to` waits for `from` */
bool graph_leads(const struct node_list *ends, const struct node_list *nodes); /* wait for all */
int graph_nodes(struct sim_graph *g, void **nodes, size_t *n);
int graph_roots(struct sim_graph *g, void **nodes, size_t *n);
int graph_edges(struct sim_graph *g, void **from, void **to, size_t *n);
int graph_before(void *node, void **nodes, size_t *n);
int graph_after(void *node, void **nodes, size_t *n);
int graph_draw(struct sim_graph *g, const char *path);
int graph_instantiate(void **exec, struct sim_graph *g);
int graph_exec_destroy(void *exec);
int graph_launch(void *exec, void *stream);
int graph_node_type(void *node, int *type);

/* ---- launch.c ---- */
int launch_kernel(void *stream, void **args, unsigned int grid, unsigned int block, size_t shared);
/* The same, where its time is known. */
int launch_kernel_for(void *stream, void **args, unsigned int grid, unsigned int block,
		      size_t shared, uint64_t ns);
int launch_host(void *stream, void (*fn)(void *), void *data);
int occupancy(int *blocks, int threads, size_t shared);

#endif
