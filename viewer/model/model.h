/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays events: what is alive on each device, what each curve's peak was. Memory grows with live
 * blocks and the names of things, not with events.
 *
 * After one run over the events and model_settle the table of lives knows every block, dead or
 * alive, and a question about a moment is a scan over it.
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

/* When a curve was highest, and what was going on then. */
struct peak {
	uint64_t bytes;
	struct gmt_event event;
	uint32_t range; /* name of the thread's innermost range, 0 = none */
};

struct curve {
	uint64_t now;
	struct peak peak;
	struct span_level *level; /* its way through the spans, or NULL */
};

struct model;

/* Whoever draws conclusions from lives sees them go by: see classes/study.h. */
struct model_watch {
	void (*born)(void *ctx, struct history *h);
	void (*died)(void *ctx, const struct history *h, const struct gmt_event *e);
	void (*leaf)(void *ctx, uint32_t leaf, const struct history *h); /* its memory, or NULL */
	void (*leaf_moved)(void *ctx, uint32_t leaf, struct history *h); /* into other memory */
	void (*gradient)(void *ctx, const struct history *h);		 /* one arrived in it */
	void (*backward_over)(void *ctx, const struct gmt_event *e);
	/* Work that touches it, of which `before` was the latest until then, 0 = none. */
	void (*used)(void *ctx, struct history *h, uint32_t work, uint32_t before);
	void (*settled)(void *ctx); /* no more events, for now */
	void (*moved)(void *ctx, struct model *to);
	void (*freed)(void *ctx);
};

struct model_device {
	bool seen;
	bool framework;	       /* it has framework blocks; else driver allocations count */
	bool self_reported;    /* the framework reports them itself, out-of-memory too */
	struct curve blocks;   /* framework blocks */
	struct curve driver;   /* device memory that CUDA calls gave, to anybody */
	struct curve reserved; /* what the framework's cache holds */
	uint64_t block_allocs, block_frees, driver_allocs, driver_frees;
	uint64_t block_ooms, driver_fails, retries;
	uint64_t oom_asked; /* bytes, the last time */
	uint64_t context;   /* at the latest sample: in use on the device, given by no call */
	/* A refused call, then memory given back, then a block after all: the cache was emptied. */
	enum { RETRY_NONE, RETRY_FAILED, RETRY_FREED } retry;
	uint64_t free_bytes, total_bytes; /* latest sample */
	struct tree live;		  /* framework blocks */
	struct pools pools;		  /* private ones of the framework's allocator */
	uint32_t *captures;		  /* in which forward pass each CUDA graph was captured */
	size_t capture_count, capture_room;
	uint64_t asleep, asleep_most; /* bytes of blocks that sleep: lives.h */
	uint64_t asleep_seq;	      /* when most was asleep, */
	uint64_t asleep_least;	      /* and the driver's bytes then */
	uint64_t reserved_asleep;     /* of segments */
	uint32_t unplaced;	      /* its segments and mappings whose pool is not known yet */
};

/* The first time that a context was made or retained, by a call that was seen; seq 0: never. */
struct model_context {
	uint64_t seq;
	uint32_t stack;
};

/* A leaf that requires grad. */
struct model_leaf {
	uint64_t addr, seq;
	uint64_t used; /* its latest event */
	int32_t device;
	bool cut;	  /* it is a cut in a graph */
	uint32_t counted; /* in grad_bytes, since that clearing */
};

struct model {
	const struct defs *defs;
	struct model_device *devices; /* MODEL_DEVICES of them */
	struct model_context contexts[MODEL_DEVICES];
	struct tree memory;   /* everything else that CUDA calls gave, host memory too */
	struct tree physical; /* by handle */
	struct tree away;     /* mappings of segments that sleep */
	struct tree mapped;   /* by address, handle = the physical memory behind */
	struct model_bucket {
		struct history *block;
		bool framework;
		uint32_t generation; /* those that took the place of others have the next one */
	} * bucket_list;	     /* buckets that live, in order of birth */
	size_t bucket_count, bucket_room;
	struct bucket_facts {
		bool live, tags;
		uint64_t bytes;
	} bucket_facts; /* what decides which of them hold gradients */
	bool buckets_changed;
	bool buckets_filled; /* some of the last generation held gradients */
	uint32_t bucket_generation;
	struct curve host; /* pinned host memory */
	uint64_t events, dropped, unknown_frees;
	uint64_t left_out; /* of the events, those that a bounded recording has no more */
	uint64_t first_ns, last_ns, last_seq;
	/* Events up to this one stand for what was there at the start, in no order of time. */
	uint64_t state_seq;
	uint64_t changed_seq;	    /* of the last block that came or went after them, 0 = none */
	bool ended;		    /* the program came to its end */
	uint64_t first_seq, end_ns; /* of the first event, of the last one */
	int device_end;		    /* 1 + the highest number of a device that was seen */
	struct lives lives;
	struct tensors tensors;
	struct waits waits;
	struct uses uses;
	uint64_t freed_addr, freed_seq; /* of the latest block that was freed */
	struct reads reads;		/* of values that a simulated device had not computed */

	const struct model_watch *watch; /* or NULL */
	void *watcher;
	struct model *home; /* where model_free moves it back to; or NULL */

	struct map saved_ids; /* SavedVariable -> index */
	struct model_saved {
		uint64_t addr, seq;
		int32_t device;
		uint32_t times; /* that it is saved: by so many nodes */
	} * saved;
	size_t saved_count, saved_room;
	uint32_t saved_free; /* 1 + the first free one; the next is in its addr */

	struct signs signs;
	struct spans spans;		  /* what threads were doing */
	MAP_OF(struct model_leaf) leaves; /* by AccumulateGrad node */
	uint64_t tags;			  /* events of autograd */
	uint64_t small_seq;		  /* of the latest block of LIVES_SMALL bytes or less */
	bool held;			  /* the program was asked what its objects hold */
	bool grads_live;		  /* gradients arrived since they were last cleared, */
	uint64_t grad_bytes;		  /* so many outside of buckets, each leaf's once */
	uint32_t clearings;
};

/* What was alive after one event; time_ns may be set before. Arrays are in order of address. */
struct moment {
	int device;
	uint64_t seq;	/* wanted: after the event with this number */
	bool framework; /* framework blocks count, not driver allocations */
	bool taken;
	uint64_t time_ns;
	uint64_t bytes, reserved, driver, host, context;
	uint64_t asleep; /* bytes of blocks that take no room now, and are not in `blocks` */
	uint64_t free_bytes, total_bytes;
	struct block
		*blocks; /* what counts on this device: framework blocks or driver allocations */
	size_t count;
	struct block *memory; /* what CUDA calls gave: device, and all host memory */
	size_t memory_count;
	struct block *mapped; /* mappings of this device */
	size_t mapped_count;
	struct block *waiting; /* freed, and other streams still use them */
	size_t waiting_count;
};

/* The driver's pool gave its blocks: how much that keeps free is not known. */
bool moment_is_pooled(const struct moment *mo);

void model_init(struct model *m, const struct defs *defs);
int model_event(void *model, const struct gmt_event *e); /* for recording_run */
void model_free(struct model *m);
/* *from is empty then: its `devices` are NULL. */
void model_move(struct model *to, struct model *from);
/* After the last event. */
void model_settle(struct model *m);
/* The moment after an event, of a model that has settled: device, seq and framework are set. */
void model_take(struct model *m, struct moment *mo);
/* Of a life that is there: a change of it, from this event on. */
void model_change(struct model *m, const struct history *h, enum life_change change,
		  const struct gmt_event *e);
/* A life by its number, with all that is true of it at all times. */
void model_block(const struct model *m, uint32_t life, struct block *b);
/* All that is known of a moment's block, for rules. */
void model_history(const struct model *m, const struct block *b, struct history *h);
uint32_t model_signs(const struct model *m, uint32_t stack); /* enum stack_sign */
/* Where a moment's block was made. */
const struct position *model_born(const struct model *m, const struct block *b);
const struct position *model_died(const struct model *m, const struct block *b);
bool model_is_leaf(const struct model *m, const struct block *b);	  /* that requires grad */
uint64_t model_first_saved(const struct model *m, const struct block *b); /* ns, 0 = never */
/* Bytes of the largest storage that autograd named in it, 0 = none. */
uint64_t model_storage(const struct model *m, const struct block *b);
/* The private pool that a segment or mapping of a moment lies in; NULL: the common one. */
const struct pool *model_pool(const struct model *m, const struct block *b);
/* The one that a refusal was asked of, in the same way. */
const struct pool *model_pool_of_mark(const struct model *m, const struct lives_mark *mark);
/* The moment after the latest event. */
void model_now(struct model *m, struct moment *mo);
void moment_free(struct moment *mo);

/* The curve that counts on a device, and the counts that belong to it. */
const struct curve *model_curve(const struct model_device *d);
/* The extents of the spans become those of that curve. */
void model_measure_spans(struct model *m, int device);
uint64_t model_peak_reserved(const struct model_device *d);
uint64_t model_allocs(const struct model_device *d);
uint64_t model_frees(const struct model_device *d);
uint64_t model_ooms(const struct model_device *d);
bool model_has_memory(const struct model_device *d); /* it had some, or was refused it */
/* The device with the highest peak, -1 if there is none. */
int model_main_device(const struct model *m);
/* What a CUDA call gave is a segment of the framework's cache. */
bool model_is_segment(uint64_t memory, unsigned flags);
