/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays events: what is alive on each device, what each curve's peak was. Memory grows with live
 * blocks and the names of things, not with events.
 *
 * After one run over the events and model_settle the table of lives knows every block, dead or
 * alive, and a question about a moment is a scan over it.
 */
#ifndef VIEWER_MODEL_H
#define VIEWER_MODEL_H

#include "../base/map.h"
#include "../base/tree.h"
#include "../spans/spans.h"
#include "../stacks/defs.h"
#include "../stacks/signs.h"
#include "history.h"

#define MODEL_DEVICES 256
#define MODEL_BIRTHS  32
#define MODEL_MADE    8
#define MODEL_SIZES   16
#define MODEL_SWAPS   4096

/* When a curve was highest, and what was going on then. */
struct peak {
	uint64_t bytes;
	struct gmt_event event;
	uint64_t steps; /* optimizer steps that had begun */
	bool in_step;	/* inside one, on that thread */
	uint32_t range; /* name of the thread's innermost range, 0 = none */
	uint64_t reserved;
};

struct curve {
	uint64_t now;
	struct peak peak;
	struct span_level *level; /* its way through the spans, or NULL */
};

/* What became of the blocks of one stack before. */
enum habit {
	HABIT_CLEARED =
		1 << 0, /* made in backward or after it, freed where gradients are cleared */
	HABIT_WENT_ON = 1 << 1, /* kept from one forward pass to a later one, and freed in it */
	HABIT_KEPT = 1 << 2,	/* or after the next one, and no backward pass came between */
	HABIT_WALKED = 1 << 3,	/* made in forward, given up in backward */
	HABIT_KEPT_ON = 1 << 4, /* made by the script, and kept over a backward pass, */
	HABIT_CARRIED = 1 << 5, /* or from after a forward pass into the next one */
	HABIT_LET_GO = 1 << 6,	/* made in forward, kept for backward, given up without one */
};

/* A forward pass, and what the script made after the one before it. */
struct model_pass {
	uint32_t blocks, gone; /* made in it; of those, given up before it was over, */
	uint32_t dropped;      /* or then, before the next backward pass */
	struct model_run {
		uint64_t from, to; /* seq */
		uint32_t blocks;
	} run, longest;	 /* deaths one behind the other: the latest, and most of them */
	uint32_t walked; /* the first backward pass that gave up some, 0 = none */
	struct {
		uint64_t from;	   /* seq: what the script makes from here on is of a graph, */
		uint32_t backward; /* that leads to the backward pass after this one */
	} graphs[2];		   /* before, and after a backward pass */
	uint32_t made[MODEL_MADE]; /* stacks of what the script made, in order, */
	uint32_t kept[MODEL_MADE]; /* and of what the next pass still had */
	uint64_t last;		   /* seq of its last block: its result */
};

/* One of a thread's latest blocks of the framework. */
struct model_birth {
	uint64_t addr, seq;
	int32_t device;
};

struct model_thread {
	struct model_birth births[MODEL_BIRTHS];
	unsigned birth;	     /* how many; the latest is births[(birth - 1) % MODEL_BIRTHS] */
	uint64_t replaced;   /* seq of the latest weight's death that made others its heirs */
	unsigned lost;	     /* modules' blocks that died since, */
	uint64_t lost_bytes; /* so large */
	struct model_let_go {
		uint32_t stack, blocks; /* of them those that one line gave up */
		uint32_t maker;		/* where the latest was made */
		uint64_t bytes;
	} let_go;
};

/* A block that an optimizer's methods made. */
struct model_swap {
	struct model_birth at;
	uint64_t size;
};

/* What one stack made outside of modules. */
struct model_set {
	struct {
		uint64_t bytes;
		uint32_t blocks;
	} sizes[MODEL_SIZES];  /* those that came first */
	uint32_t changes;      /* 1 + how often the size was another than before in its pass */
	uint32_t pass, passes; /* the latest that it made some before, and how many */
	uint32_t at_once;      /* blocks before that pass */
	uint64_t last;
	struct model_birth firsts[2]; /* of the pass before the latest, and of that one */
	bool gathers;		      /* what it made two passes before was still there */
};

/* What one line of Python made outside of modules before the first pass. */
struct model_line {
	struct {
		uint64_t bytes;
		uint32_t blocks;
	} sizes[MODEL_SIZES]; /* those that came first */
	uint32_t blocks;
	bool later; /* it went on when passes had begun */
};

/* Blocks of one size in a recording that begins late. */
struct model_size {
	uint32_t standing;	      /* there before it and at its end */
	uint32_t backward, now, most; /* that a backward pass left: the latest one, of it, of any */
};

/* What a backward pass left behind. */
struct model_left {
	uint32_t backward, blocks; /* of the latest that some are known of */
	uint64_t bytes, most;	   /* of it; and of any that left more than a workspace or two */
};

struct model_device {
	bool seen;
	bool framework;	       /* it has framework blocks; else driver allocations count */
	bool told;	       /* the framework reports them itself, out-of-memory too */
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
	struct device_level level;	  /* the latest that was written */
};

struct model {
	const struct defs *defs;
	struct model_device *devices; /* MODEL_DEVICES of them */
	struct tree memory;	      /* everything else that CUDA calls gave, host memory too */
	struct tree physical;	      /* by handle */
	struct tree mapped;	      /* by address, handle = the physical memory behind */
	struct model_bucket {
		struct history *block;
		bool framework;
	} * bucket_list; /* buckets that live, in order of birth */
	size_t bucket_count, bucket_room;
	struct bucket_facts {
		bool live, tags;
		uint64_t bytes;
	} bucket_facts; /* what decides which of them hold gradients */
	bool buckets_changed;
	struct curve host; /* pinned host memory */
	uint64_t events, dropped, unknown_frees;
	uint64_t first_ns, last_ns, last_seq;
	/* Events up to this one stand for what was there at the start, in no order of time. */
	uint64_t state_seq;
	uint64_t changed_seq;	    /* of the last block that came or went after them, 0 = none */
	bool ended;		    /* the program came to its end */
	uint64_t first_seq, end_ns; /* of the first event, of the last one */
	int device_end;		    /* 1 + the highest number of a device that was seen */
	bool bare;		    /* no lives are kept */
	struct lives lives;

	struct map thread_ids;
	uint32_t thread_latest; /* id of the one that was asked for last, */
	uint32_t thread_at;	/* and where it is */
	struct model_thread *threads;
	size_t thread_count, thread_room;

	struct map saved_ids; /* SavedVariable -> index */
	struct model_saved {
		uint64_t addr, seq;
		int32_t device;
	} * saved;
	size_t saved_count, saved_room;
	uint32_t saved_free; /* 1 + the first free one; the next is in its addr */

	struct signs signs;
	struct spans spans;  /* what threads were doing */
	struct map leaf_ids; /* AccumulateGrad node -> index in leaves */
	struct model_leaf {
		uint64_t addr, seq;
		int32_t device;
		bool cut;	       /* it is a cut in a graph */
		uint32_t stack, signs; /* see model_note_maker */
	} * leaves;
	size_t leaf_count, leaf_room;
	struct map habits; /* stack -> enum habit: what became of its blocks */
	struct map walked; /* stem -> 1: backward gave up a block that its frames made */
	struct map sizes;  /* of modules' blocks and of gradients */
	uint64_t largest_gradient;
	struct map set_ids; /* stack -> index in sets */
	struct model_set *sets;
	size_t set_count, set_room;
	struct map before_ids; /* size -> index in before */
	struct model_size *before;
	size_t before_count, before_room;
	bool settled;
	struct map line_ids; /* signs_line -> index in lines */
	struct model_line *lines;
	size_t line_count, line_room;
	struct model_swap made[MODEL_SWAPS];
	uint32_t made_count;	/* in all; the latest are there */
	struct map reduced_ids; /* stack -> index of the latest that it reduced gradients into */
	struct model_birth *reduced;
	size_t reduced_count, reduced_room;
	struct model_pass *passes; /* by their number: block.born_forward */
	size_t pass_count, pass_room;
	uint64_t tags;			 /* events of autograd */
	uint64_t grads_gone, grads_kept; /* bytes of gradients that backward freed, or not */
	uint64_t buckets;		 /* bytes that data parallelism made for them */
	struct model_left left;		 /* without tags */
	uint32_t walks_over;		 /* the backward pass that is over and was told of */
	bool grads_live;		 /* gradients arrived since they were last cleared, */
	uint64_t grad_bytes;		 /* so many */
};

/* What was alive after one event; time_ns may be set before. Arrays are in order of address. */
struct moment {
	int device;
	uint64_t seq;	/* wanted: after the event with this number */
	bool framework; /* framework blocks count, not driver allocations */
	bool taken;
	uint64_t time_ns;
	uint64_t bytes, reserved, driver, host, context;
	uint64_t free_bytes, total_bytes;
	struct block
		*blocks; /* what counts on this device: framework blocks or driver allocations */
	size_t count;
	struct block *memory; /* what CUDA calls gave: device, and all host memory */
	size_t memory_count;
	struct block *mapped; /* mappings of this device */
	size_t mapped_count;
};

void model_init(struct model *m, const struct defs *defs);
int model_event(void *model, const struct gmt_event *e); /* for recording_run */
void model_free(struct model *m);
/* After the last event. */
void model_settle(struct model *m);
/* The moment after an event, of a model that has settled: device, seq and framework are set. */
void model_take(struct model *m, struct moment *mo);
/* A life by its number, with all that is true of it at all times. */
void model_block(const struct model *m, uint32_t life, struct block *b);
/* All that is known of a moment's block, for rules. */
void model_history(const struct model *m, const struct block *b, struct history *h);
uint32_t model_signs(const struct model *m, uint32_t stack); /* enum stack_sign */
/* Where a moment's block was made. */
const struct position *model_born(const struct model *m, const struct block *b);
const struct position *model_died(const struct model *m, const struct block *b);
bool model_is_leaf(const struct model *m, const struct block *b); /* that requires grad */
/* Bytes of the largest storage that autograd named in it, 0 = none. */
uint64_t model_storage(const struct model *m, const struct block *b);
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
/* The device with the highest peak, -1 if there is none. */
int model_main_device(const struct model *m);
/* Buckets of gradients older than this one hold `before` bytes: it holds gradients too by now. */
bool model_bucket_filled(const struct model *m, uint64_t before);
/* Most blocks that this stack made outside are as large as a parameter each, and not all alike. */
bool model_is_of_a_set(const struct model *m, uint32_t stack);
/* They gather from pass to pass: something keeps them all. */
bool model_gathers(const struct model *m, uint32_t stack);
bool model_makes_many(const struct model *m, uint32_t stack); /* before each of several passes */
bool model_makes_many_once(const struct model *m, uint32_t stack); /* and never again */
/* Its line made it before the first pass with many others, of some sizes more than of others, and
 * none later. */
bool model_is_of_many(const struct model *m, const struct history *b);
/* Its line makes some after the first pass too. */
bool model_line_goes_on(const struct model *m, const struct history *b);
bool model_size_is_of_weight(const struct model *m, uint64_t size); /* or of a gradient */
/* The script's own part of a graph had begun when it made the block. */
bool model_is_of_graph(const struct model *m, const struct history *b);
/* It was there before the recording began, and nobody knows who made it. */
bool model_is_before(const struct model *m, const struct history *b);
/* NULL: no such block is known. After model_settle. */
const struct model_size *model_before_of(const struct model *m, uint64_t size);
/* NULL if nothing was made in it or before it. */
const struct model_pass *model_pass_of(const struct model *m, uint32_t number);
/* Most of what it made outlived it, and nothing has walked it back; or was there too when the next
 * backward pass began. */
bool model_keeps_graph(const struct model_pass *p);
bool model_keeps_much(const struct model_pass *p); /* a third or more */
bool model_takes_graph_on(const struct model_pass *p);
/* It died when most of its pass did, or not at all. */
bool model_died_with_pass(const struct model_pass *p, const struct history *b);
/* Backward gives up what these frames make, whoever called the module. */
bool model_stem_is_walked(const struct model *m, uint32_t stem);
bool model_has_habit(const struct model *m, uint32_t stack, enum habit habit);
/* Born in backward, after one or ahead of it in a Function, given up where gradients are cleared.
 */
bool model_was_cleared(const struct model *m, const struct history *b);
/* Born in one forward pass, given up inside a later one: its successor took over. */
bool model_went_on(const struct history *b);
bool model_was_kept(const struct history *b); /* or after that pass */

#endif
