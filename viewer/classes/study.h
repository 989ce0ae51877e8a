/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a life that follow from other lives, collected while the model replays the events:
 * habits of a stack, sets of blocks from one line, blocks that replace others, blocks that passes
 * keep. Only past events count, nothing is predicted. For rules only.
 */
#pragma once

#include "../model/model.h"

#define STUDY_BIRTHS 32
#define STUDY_MADE   8
#define STUDY_SIZES  16
#define STUDY_SWAPS  4096

/* The fate of earlier blocks of one stack. */
enum habit {
	HABIT_CLEARED =
		1 << 0,	     /* made in backward or after it, freed where gradients are cleared */
	HABIT_KEPT = 1 << 1, /* made in forward, freed in a later forward pass, or after the
				next one with no backward pass in between */
	HABIT_OF_GRAPH = 1 << 3, /* made in forward, freed in backward */
	HABIT_OF_STEP = 1 << 2,	 /* made and freed in one optimizer's step */
	HABIT_KEPT_ON = 1 << 4,	 /* made by the script, and kept over a backward pass */
	HABIT_READ = 1 << 5,	 /* made by the script, and alive when a pass began */
	HABIT_OF_STATE = 1 << 6, /* updates read it again and again (rule_uses.c) */
	HABIT_FOR_PASS = 1 << 7, /* a module's pass used it, or a block computed from it */
};

/* A forward pass, and the script's blocks since the one before it. */
struct forward_pass {
	uint32_t blocks, gone; /* made in it; of those, freed before it was over */
	uint32_t dropped;      /* freed later, before the next backward pass */
	uint32_t backward;     /* the first backward pass that freed some, 0 = none */
	struct {
		uint64_t from;	   /* seq: the script's later blocks are part of a graph */
		uint32_t backward; /* its backward pass is the one after this */
	} graphs[2];		   /* before, and after a backward pass */
	uint32_t made[STUDY_MADE]; /* stacks of the script's blocks, in order */
	uint32_t kept[STUDY_MADE]; /* stacks of its blocks that were alive in the next pass */
	uint64_t largest_kept[STUDY_MADE]; /* bytes of the largest block of each */
	uint64_t last, last_size;	   /* seq and size of its last block: its result */
};

/* A framework block, live or freed: see study_alive. */
struct study_birth {
	uint64_t addr, seq;
	int32_t device;
};

static inline struct study_birth study_birth(const struct history *h)
{
	return (struct study_birth){ h->block.addr, h->block.seq, h->block.device };
}

/* What made a block: the signs of a module or an optimizer, 0 = none. */
struct study_maker {
	uint32_t stack, signs;
};

/* A thread's latest blocks, and the modules' blocks that died on it. */
struct study_thread {
	struct study_birth births[STUDY_BIRTHS];
	unsigned birth;	   /* number of births; the latest is births[(birth - 1) % STUDY_BIRTHS] */
	uint64_t replaced; /* seq of the latest death of a weight before any pass used it */
	unsigned lost;	   /* modules' blocks that died since the latest birth */
	uint64_t lost_bytes; /* their bytes */
	struct study_let_go {
		uint32_t stack, blocks;	  /* those of them that one stack freed */
		struct study_maker maker; /* of the latest */
		uint64_t bytes;
	} let_go;
};

/* A block that an optimizer's method made outside of its step. */
struct study_swap {
	struct study_birth at;
	uint64_t size;
};

/* Number of blocks by size, for the first STUDY_SIZES sizes. */
struct study_sizes {
	struct {
		uint64_t bytes;
		uint32_t blocks;
	} of[STUDY_SIZES];
};

/* Blocks that one stack made outside of modules. */
struct study_set {
	struct study_sizes sizes;
	uint32_t changes;	      /* 1 + number of times that the size changed within a pass */
	uint32_t pass, passes;	      /* latest pass before which it made blocks; number of them */
	uint32_t in_a_row;	      /* such passes with no backward pass since the one before */
	uint32_t backward;	      /* backward passes begun at the latest */
	uint32_t at_once;	      /* blocks made before the latest pass */
	uint64_t last;		      /* bytes of the latest block */
	struct study_birth firsts[2]; /* first blocks before the last two of these passes */
	bool gathers;		      /* a block from two passes before was still alive */
	bool trained; /* some are weights: the line makes a model, not copies of one */
};

/* Blocks that one line of Python made outside of modules before the first pass. */
struct study_line {
	struct study_sizes sizes;
	uint32_t blocks;
	bool later; /* it made more when passes had begun */
};

/* Blocks of one size in a recording that begins late. */
struct study_size {
	uint32_t standing;	      /* alive before it and at its end */
	uint32_t backward, now, most; /* latest backward pass; blocks left by it, and by any */
};

/* Blocks that a backward pass left behind. */
struct study_left {
	uint32_t backward, blocks; /* the latest pass that left some, and how many */
	uint64_t bytes, most;	   /* left by it, and by any that left more than 2 workspaces */
};

/* Work that used a block, and the other blocks in that work. */
enum used {
	USED_IN_FORWARD = 1 << 0, /* a module's pass */
	USED_IN_BACKWARD = 1 << 1,
	USED_WITH_GRADIENT = 1 << 2, /* outside of passes: with a gradient, or one's result */
	USED_OF_GRADIENT = 1 << 3,   /* and it is no weight: it might be computed from one */
	USED_AGAIN = 1 << 4,	     /* outside of passes, and before the last backward pass */
	USED_OF_WEIGHT = 1 << 5,     /* computed from a weight before the first pass */
	USED_OF_RESULT = 1 << 6, /* the script made it from a pass's result, or wrote one to it */
	USED_BY_KERNEL = 1 << 7, /* by kernels, not only by copies */
};

#define STUDY_TOUCHED 1024

/* The latest piece of work, and the blocks that it touches. */
struct study_work {
	uint32_t work, count;
	uint32_t backward; /* latest work of a backward pass */
	uint32_t used;	   /* USED_IN_FORWARD, USED_IN_BACKWARD, or 0 */
	uint32_t kernel;   /* USED_BY_KERNEL, or 0 */
	bool gradient;	   /* it touches a gradient, or a block computed from one */
	bool of_result;	   /* it touches a pass's result, or a block made from one */
	uint32_t source;   /* stack of the block that it copies, which the work before it read */
	uint32_t latest;   /* stack of the block that it touched last */
	struct study_touched {
		struct history *h;
		uint32_t life;
		bool first; /* its first use: only this work can have written it */
	} touched[STUDY_TOUCHED];
};

struct study {
	struct model *m;
	struct row_store concluded, concluded_of; /* life -> row, 0 = none */
	uint32_t concluded_recent[ROWS_RECENT];
	struct map habits;  /* stack -> enum habit: what became of its blocks */
	struct map made_of; /* stack -> stack of the largest block that its blocks are made from */
	struct map sizes;   /* size -> number of modules' blocks and gradients */
	uint64_t largest_gradient;
	MAP_OF(struct study_set) sets;	  /* by stack */
	MAP_OF(struct study_line) lines;  /* by signs_line */
	MAP_OF(struct study_size) before; /* by size */
	bool settled;
	bool makes_state; /* an optimizer made some of the live blocks */
	bool mixed;	  /* more blocks of one size are old than a model and its state have */
	MAP_OF(struct study_thread) threads;
	struct study_maker *makers; /* of leaves, by their number */
	size_t maker_count, maker_room;
	struct study_swap made[STUDY_SWAPS];
	uint32_t made_count; /* in all; `made` has the latest */
	MAP_OF(struct study_birth)
	reduced;		    /* by stack: the latest block of reduced gradients */
	struct study_birth *loaded; /* read from files, and not decided yet */
	size_t loaded_count, loaded_room;
	uint32_t loaded_steps;	     /* optimizer steps that had begun at the latest of them */
	struct forward_pass *passes; /* by their number */
	size_t pass_count, pass_room;
	struct map graph_paths;		 /* module path -> 1: backward freed a block made there */
	uint32_t backward_over;		 /* the latest backward pass that is known to be over */
	uint64_t grads_gone, grads_kept; /* bytes of gradients that backward freed, or not */
	uint64_t buckets;		 /* bytes of data parallelism's buckets */
	struct study_left left;		 /* without tags */
	struct study_work work;
	uint64_t *updates; /* seq of the latest update of leaves between two backward passes */
	size_t update_count, update_room;
	uint32_t updated; /* backward passes begun at the last of them */
};

/* To call before the first event. m collects what classes need, and model_free frees it. */
void study_begin(struct model *m);
/* All facts about a moment's block, and the conclusions. */
void study_history(const struct study *st, const struct block *b, struct history *h);

/* habits.c */
void study_habits_died(struct study *st, const struct history *h);
bool study_has_habit(const struct study *st, uint32_t stack, enum habit habit);
/* Born in backward, after it or ahead of it in a Function, and freed where gradients are cleared.
 */
bool study_was_cleared(const struct study *st, const struct history *h);
/* Born in one forward pass and freed inside a later one, where another block replaced it. */
bool life_went_on(const struct history *h);
bool life_was_kept(const struct history *h); /* or after the next pass */

/* sets.c */
void study_sets_leaf(struct study *st, const struct history *h);	     /* it is a leaf */
struct history *study_alive(struct study *st, const struct study_birth *at); /* NULL: freed */
void study_sets_born(struct study *st, const struct history *h);
void study_gradient_size(struct study *st, uint64_t size);
/* Counts a block of that size; `about`: with those of sizes for which study_as_large is true. */
void study_count_size(struct study_sizes *s, uint64_t size, bool about);
/* Equal sizes, or large ones that differ by a rest of up to 1 MiB that was not split off. */
bool study_as_large(uint64_t a, uint64_t b);
bool study_size_is_of_weight(const struct study *st, uint64_t size); /* or of a gradient */
bool study_size_is_of_copy(const struct study *st, uint64_t size);   /* or in twice the precision */
bool study_has_model(const struct study *st);			     /* modules made some */
/* Most blocks that this stack made outside of modules have parameters' sizes, and not all one. */
bool study_is_of_a_set(const struct study *st, uint32_t stack);
bool study_is_for_each_layer(const struct study *st, uint32_t stack);
/* Its blocks accumulate from pass to pass, because something keeps them all. */
bool study_gathers(const struct study *st, uint32_t stack);
/* Between two passes it makes as many blocks as a network has tensors. */
bool study_is_of_network(const struct study *st, uint32_t stack);
/* It makes several blocks before each of several passes, mostly without backward passes between. */
bool study_makes_many(const struct study *st, uint32_t stack);

/* lines.c */
void study_lines_born(struct study *st, const struct history *h);
/* Its line made many blocks before the first pass, not as many of each size, and none later. */
bool study_is_of_many(const struct study *st, const struct history *h);
/* The same, and as many share a size as a network has layers. Before a second pass nothing else
 * distinguishes weights from a batch. */
bool study_is_of_layers(const struct study *st, const struct history *b);

/* loaded.c */
void study_loaded_born(struct study *st, const struct history *h);
void study_loaded_over(struct study *st);

/* predecessors.c */
void study_predecessors_born(struct study *st, struct history *h);
void study_predecessors_died(struct study *st, const struct history *h, const struct gmt_event *e);
void study_leaf(void *ctx, uint32_t leaf, const struct history *h); /* its block; NULL: unknown */
void study_leaf_moved(void *ctx, uint32_t leaf, struct history *h); /* into this block */

/* forward_passes.c */
void study_passes_born(struct study *st, struct history *h);
void study_passes_died(struct study *st, const struct history *h);
void study_backward_over(void *ctx, const struct gmt_event *e);
/* NULL if no block was made in the pass or since the one before. */
const struct forward_pass *study_pass_of(const struct study *st, uint32_t number);
/* The script's own part of a graph had begun when the block was made. */
bool study_is_of_graph(const struct study *st, const struct history *h);
/* More than a quarter of its blocks outlived it, and no backward pass freed any. */
bool pass_keeps_graph(const struct forward_pass *p);
bool pass_keeps_much(const struct forward_pass *p);	/* more than a third outlived it */
bool pass_takes_graph_on(const struct forward_pass *p); /* the same until the next backward pass */
/* The size is that of the pass's result in twice or half the precision. */
bool pass_returned(const struct forward_pass *p, uint64_t size);
/* Backward freed a block that these frames made, whoever called the module. */
bool study_path_is_of_graph(const struct study *st, uint32_t module_path);

/* rule_uses.c */
void study_used(void *ctx, struct history *h, uint32_t work, uint32_t before);
void study_uses_died(struct study *st, const struct history *h);
void study_settle_work(struct study *st);
/* Leaves were updated during its life, and no update used it. */
bool study_passed_over(const struct study *st, const struct history *h);

/* rule_before.c */
void study_old_end(struct study *st, const struct history *h);
void study_settle_old(struct study *st);
/* The block was there before the recording began, and its maker is unknown. */
/* Where the sizes of weights are known: one of them, with a stack or older than the recording. */
bool study_has_weight_like(const struct study *st, const struct history *h);
bool study_is_old(const struct study *st, const struct history *h);
