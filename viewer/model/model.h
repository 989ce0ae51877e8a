/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays events into the live blocks and the peaks of each device, and into the table of lives.
 * After one pass over the events and model_settle that table has every block, live or freed, and
 * the blocks of any moment are found by a scan over it.
 */
#pragma once

#include "../base/map.h"
#include "../base/tree.h"
#include "../recording/defs.h"
#include "../recording/signs.h"
#include "history.h"
#include "private_pool.h"
#include "side_tables.h"
#include "spans.h"
#include "life_uses.h"

#define MODEL_DEVICES LEVEL_DEVICES

/* A curve's highest value, and the event that reached it. */
struct peak {
	uint64_t bytes;
	struct gmt_event event;
	uint32_t range; /* name of the thread's innermost range, 0 = none */
};

struct curve {
	uint64_t now;
	struct peak peak;
	struct span_level *level; /* its bytes in the latest span, or NULL */
};

struct model;

/* Callbacks for classes/study.h, which draws conclusions during the replay. */
struct model_watch {
	void (*born)(void *ctx, struct history *h);
	void (*died)(void *ctx, const struct history *h, const struct gmt_event *e);
	void (*leaf)(void *ctx, uint32_t leaf, const struct history *h); /* h: its block, or NULL */
	void (*leaf_moved)(void *ctx, uint32_t leaf, struct history *h); /* h: its new block */
	void (*gradient)(void *ctx, const struct history *h);		 /* one arrived in h */
	void (*backward_over)(void *ctx, const struct gmt_event *e);
	/* `work` touches h; `before` is the previous work that did, 0 = none. */
	void (*used)(void *ctx, struct history *h, uint32_t work, uint32_t before);
	void (*settled)(void *ctx); /* after the last event read so far */
	void (*moved)(void *ctx, struct model *to);
	void (*freed)(void *ctx);
};

struct model_device {
	bool seen;
	bool framework;	       /* framework blocks count, else driver allocations */
	bool self_reported;    /* the framework reports its blocks and out of memory */
	struct curve blocks;   /* framework blocks */
	struct curve driver;   /* device memory from CUDA calls, for all callers */
	struct curve reserved; /* bytes in the framework's segments */
	uint64_t block_allocs, block_frees, driver_allocs, driver_frees;
	uint64_t block_ooms, driver_fails, retries;
	uint64_t oom_asked;		   /* bytes of the last request that failed */
	uint64_t other_fails, other_asked; /* of CUDA calls outside the framework */
	uint64_t context; /* bytes in use at the latest sample beyond those of recorded calls */
	/* The cache was emptied if a call failed, segments were freed, and then a block came. */
	enum { RETRY_NONE, RETRY_FAILED, RETRY_FREED } retry;
	uint64_t free_bytes, total_bytes; /* latest sample */
	struct tree live;		  /* framework blocks */
	struct pools pools;		  /* private ones of the framework's allocator */
	uint32_t *captures; /* for each capture of a CUDA graph: forward passes begun */
	size_t capture_count, capture_room;
	uint64_t asleep, asleep_most; /* bytes of blocks that sleep: lives.h */
	uint64_t asleep_seq;	      /* the event with the fewest driver bytes while most slept */
	uint64_t asleep_least;	      /* driver bytes then */
	uint64_t reserved_asleep;     /* bytes of segments that sleep */
	uint32_t unplaced;	      /* segments and mappings whose pool is not known yet */
};

/* The first recorded call that made or retained the device's context; seq 0 = none. */
struct model_context {
	uint64_t seq;
	uint32_t stack;
};

/* A leaf that requires grad. */
struct model_leaf {
	uint64_t addr, seq;
	uint64_t used; /* its latest event */
	int32_t device;
	bool cut;	  /* checkpointing cut the graph there */
	uint32_t counted; /* 1 + clearings when it was last added to grad_bytes */
};

struct model {
	const struct defs *defs;
	struct model_device *devices; /* MODEL_DEVICES of them */
	struct model_context contexts[MODEL_DEVICES];
	struct tree memory;   /* other memory from CUDA calls, also host memory */
	struct tree physical; /* by handle */
	struct tree away;     /* mappings of segments that sleep */
	struct tree mapped;   /* by address; handle = its physical memory */
	struct model_bucket {
		struct history *block;
		bool framework;
		uint32_t generation; /* 1 more than that of the buckets it replaced */
	} * bucket_list;	     /* live buckets in order of birth */
	size_t bucket_count, bucket_room;
	struct bucket_facts {
		bool live, tags;
		uint64_t bytes;
	} bucket_facts; /* the facts by which it was last decided which hold gradients */
	bool buckets_changed;
	bool buckets_filled; /* some have held gradients since the latest generation began */
	uint32_t bucket_generation;
	struct curve host; /* pinned host memory */
	uint64_t events, dropped, unknown_frees;
	uint64_t left_out; /* events that a bounded recording left out; `events` counts them */
	uint64_t first_ns, last_ns, last_seq;
	/* Events up to this one list the memory at the start, in no order of time. */
	uint64_t state_seq;
	uint64_t changed_seq;	    /* last later event that made or freed a block, 0 = none */
	bool ended;		    /* the program came to its end */
	uint64_t first_seq, end_ns; /* the first event; time of the last one */
	int device_end;		    /* 1 + the highest number of a device that was seen */
	struct lives lives;
	struct tensors tensors;
	struct waits waits;
	struct uses uses;
	uint64_t freed_addr, freed_seq; /* the block that was freed last */
	struct reads reads; /* reads of values that a simulated device did not compute */

	const struct model_watch *watch; /* or NULL */
	void *watcher;
	struct model *home; /* model_free moves the model back there instead; or NULL */

	struct map saved_ids; /* SavedVariable -> index */
	struct model_saved {
		uint64_t addr, seq;
		int32_t device;
		uint32_t times; /* number of nodes that save it */
	} * saved;
	size_t saved_count, saved_room;
	uint32_t saved_free; /* 1 + the first free entry, 0 = none; the next is in its addr */

	struct signs signs;
	struct spans spans;		  /* what threads were doing */
	MAP_OF(struct model_leaf) leaves; /* by AccumulateGrad node */
	uint64_t tags;			  /* number of autograd's events */
	uint64_t small_seq;		  /* of the latest block of LIVES_SMALL bytes or less */
	bool held;			  /* the recording says what the program's objects held */
	bool grads_live;		  /* gradients arrived since they were last cleared */
	uint64_t grad_bytes;		  /* of these, outside of buckets, each leaf's once */
	uint32_t clearings;
};

/* Memory that was alive after one event. Arrays are in order of address. */
struct moment {
	int device;
	uint64_t seq;	  /* number of that event */
	bool framework;	  /* framework blocks count, not driver allocations */
	bool taken;	  /* false: the recording ended before */
	uint64_t time_ns; /* if 0, model_take finds it */
	uint64_t bytes, reserved, driver, host, context;
	uint64_t asleep; /* bytes of blocks that sleep and are not in `blocks` */
	uint64_t free_bytes, total_bytes;
	struct block
		*blocks; /* what counts on this device: framework blocks or driver allocations */
	size_t count;
	struct block *memory; /* from CUDA calls: of this device, and all host memory */
	size_t memory_count;
	struct block *mapped; /* mappings of this device */
	size_t mapped_count;
	struct block *waiting; /* freed, but other streams still use them */
	size_t waiting_count;
};

/* The blocks of a moment: a loop over them, the bytes of those for which the condition is true, and
 * the largest of those (NULL: there is none). */
#define FOR_BLOCKS(b, mo)	     FOR_EACH (const struct block, b, (mo)->blocks, (mo)->count)
#define BYTES_OF(b, mo, condition)   SUM_OF(b, (mo)->blocks, (mo)->count, (condition) ? b->size : 0)
#define LARGEST_OF(b, mo, condition) GREATEST_OF(b, (mo)->blocks, (mo)->count, condition, b->size)

/* True if its blocks are in a pool of the driver, of which the cached bytes are not known. */
bool moment_is_pooled(const struct moment *mo);

void model_init(struct model *m, const struct defs *defs);
int model_event(void *model, const struct gmt_event *e); /* for recording_run */
void model_free(struct model *m);
/* Afterwards *from is empty: its `devices` are NULL. */
void model_move(struct model *to, struct model *from);
/* To call after the last event read so far. */
void model_settle(struct model *m);
/* Fills in a moment of a settled model. The caller sets device, seq and framework, and calls
 * moment_free. */
void model_take(struct model *m, struct moment *mo);
/* Records a change of a live block, from this event on. */
void model_change(struct model *m, const struct history *h, enum life_change change,
		  const struct gmt_event *e);
/* Fills in the block of a life, without its state, which changes from moment to moment. */
void model_block(const struct model *m, uint32_t life, struct block *b);
/* Everything that the model knows about a moment's block, for rules. */
void model_history(const struct model *m, const struct block *b, struct history *h);
uint32_t model_signs(const struct model *m, uint32_t stack); /* enum stack_sign */
/* Activity of the threads that allocated and freed a moment's block. */
const struct position *model_born(const struct model *m, const struct block *b);
const struct position *model_died(const struct model *m, const struct block *b);
bool model_is_leaf(const struct model *m, const struct block *b);	  /* that requires grad */
uint64_t model_first_saved(const struct model *m, const struct block *b); /* ns, 0 = never */
/* Bytes of the largest storage that autograd named in it, 0 = none. */
uint64_t model_storage(const struct model *m, const struct block *b);
/* The private pool that a segment or mapping of a moment lies in; NULL: the common one. */
const struct pool *model_pool(const struct model *m, const struct block *b);
/* The pool of a request that ran out of memory, in the same way. */
const struct pool *model_pool_of_mark(const struct model *m, const struct lives_mark *mark);
/* The moment after the latest event. */
void model_now(struct model *m, struct moment *mo);
void moment_free(struct moment *mo);

/* The curve that counts on a device, and the counts that belong to it. */
const struct curve *model_curve(const struct model_device *d);
/* Sets the extents of the spans to the bytes of that curve. */
void model_measure_spans(struct model *m, int device);
uint64_t model_peak_reserved(const struct model_device *d);
uint64_t model_allocs(const struct model_device *d);
uint64_t model_frees(const struct model_device *d);
uint64_t model_ooms(const struct model_device *d);
bool model_has_memory(const struct model_device *d); /* it had some, or ran out of it */
/* The device with the highest peak, -1 if there is none. */
int model_main_device(const struct model *m);
/* True if memory from a CUDA call (enum gmt_mem, enum gmt_flag) is a framework's segment. */
bool model_is_segment(uint64_t memory, unsigned flags);
