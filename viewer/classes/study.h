/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lives say of one another, noted while the model replays the events: habits of a stack, sets
 * that one line makes, blocks that take the place of others, what passes keep. Only what has
 * happened counts, nothing is guessed ahead. Rules ask it; nobody else needs it.
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
	HABIT_KEPT = 1 << 1, /* from one forward pass to a later one and freed in it, or after the
				next one, and no backward pass came between */
	HABIT_OF_GRAPH = 1 << 3, /* made in forward, freed in backward */
	HABIT_OF_STEP = 1 << 2,	 /* made and freed in one optimizer's step */
	HABIT_KEPT_ON = 1 << 4,	 /* made by the script, and kept over a backward pass */
	HABIT_READ = 1 << 5,	 /* made by the script, and there when a pass began */
	HABIT_OF_STATE = 1 << 6, /* updates read it again and again (rule_uses.c) */
	HABIT_FOR_PASS = 1 << 7, /* a module's pass used it, or what was made of it */
};

/* A forward pass, and what the script made after the one before it. */
struct forward_pass {
	uint32_t blocks, gone; /* made in it; of those, freed before it was over, */
	uint32_t dropped;      /* or then, before the next backward pass */
	uint32_t backward;     /* the first backward pass that freed some, 0 = none */
	struct {
		uint64_t from;	   /* seq: what the script makes from here on is of a graph, */
		uint32_t backward; /* that leads to the backward pass after this one */
	} graphs[2];		   /* before, and after a backward pass */
	uint32_t made[STUDY_MADE]; /* stacks of what the script made, in order, */
	uint32_t kept[STUDY_MADE]; /* and of what the next pass still had, */
	uint64_t largest_kept[STUDY_MADE]; /* the largest block of each */
	uint64_t last, last_size;	   /* seq and size of its last block: its result */
};

/* A block of the framework, wherever its life has come to. */
struct study_birth {
	uint64_t addr, seq;
	int32_t device;
};

/* A thread's latest blocks, and the modules' blocks that died on it. */
struct study_thread {
	struct study_birth births[STUDY_BIRTHS];
	unsigned birth;	     /* how many; the latest is births[(birth - 1) % STUDY_BIRTHS] */
	uint64_t replaced;   /* seq of the latest weight's death that others took the place of */
	unsigned lost;	     /* modules' blocks that died since, */
	uint64_t lost_bytes; /* so large */
	struct study_let_go {
		uint32_t stack, blocks; /* of them those that one line gave up */
		uint32_t maker;		/* where the latest was made */
		uint64_t bytes;
	} let_go;
};

/* A block that an optimizer's methods made. */
struct study_swap {
	struct study_birth at;
	uint64_t size;
};

/* Who made a leaf's memory. */
struct study_maker {
	uint32_t stack, signs;
};

/* Blocks by their size, of those sizes that came first. */
struct study_sizes {
	struct {
		uint64_t bytes;
		uint32_t blocks;
	} of[STUDY_SIZES];
};

/* Blocks that one stack made outside of modules. */
struct study_set {
	struct study_sizes sizes;
	uint32_t changes;      /* 1 + how often the size was another than before in its pass */
	uint32_t pass, passes; /* the latest that it made some before, and how many */
	uint32_t in_a_row;     /* of those, how many with no backward pass since the one before */
	uint32_t backward;     /* how many had begun at the latest */
	uint32_t at_once;      /* blocks before that pass */
	uint64_t last;
	struct study_birth firsts[2]; /* of the pass before the latest, and of that one */
	bool gathers;		      /* what it made two passes before was still there */
	bool trained; /* weights are of it: the line makes a model, and no copies of one */
};

/* Blocks that one line of Python made outside of modules before the first pass. */
struct study_line {
	struct study_sizes sizes;
	uint32_t blocks;
	bool later; /* it went on when passes had begun */
};

/* Blocks of one size in a recording that begins late. */
struct study_size {
	uint32_t standing;	      /* there before it and at its end */
	uint32_t backward, now, most; /* that a backward pass left: the latest one, of it, of any */
};

/* Blocks that a backward pass left behind. */
struct study_left {
	uint32_t backward, blocks; /* of the latest that some are known of */
	uint64_t bytes, most;	   /* of it; and of any that left more than a workspace or two */
};

/* The operations that used a block, and the other blocks in them. */
enum used {
	USED_IN_FORWARD = 1 << 0, /* a module's pass */
	USED_IN_BACKWARD = 1 << 1,
	USED_WITH_GRADIENT = 1 << 2, /* outside of both, also with what was computed from one */
	USED_OF_GRADIENT = 1 << 3,   /* and it is no weight: it may have been computed from one */
	USED_AGAIN = 1 << 4,	     /* in both of two updates with a backward pass between them */
	USED_OF_WEIGHT = 1 << 5,     /* computed from a weight before the first pass */
	USED_OF_RESULT = 1 << 6, /* the script made it of what a pass made, or wrote that into it */
	USED_BY_KERNEL = 1 << 7, /* not by copies alone */
};

#define STUDY_TOUCHED 1024

/* The latest piece of work, and the blocks that it touches. */
struct study_work {
	uint32_t work, count;
	uint32_t backward; /* the latest of a backward pass */
	uint32_t used;	   /* enum used: of this one */
	uint32_t kernel;   /* USED_BY_KERNEL, or 0 */
	bool gradient;	   /* it touches one, or what was computed from one */
	bool of_result;	   /* or what a pass made, or what was made of that */
	uint32_t source;   /* stack of what it copies: the work before it read that */
	uint32_t latest;   /* stack of what it touched last */
	struct study_touched {
		struct history *h;
		uint32_t life;
		bool first; /* its first use: nothing but this work can have written it */
	} touched[STUDY_TOUCHED];
};

struct study {
	struct model *m;
	struct row_store concluded, concluded_of; /* of a life: the number of its row, 0 = none */
	uint32_t concluded_recent[ROWS_RECENT];
	struct map habits;  /* stack -> enum habit: what became of its blocks */
	struct map made_of; /* stack -> that of the largest block that the script made one of */
	struct map sizes;   /* of modules' blocks and of gradients */
	uint64_t largest_gradient;
	MAP_OF(struct study_set) sets;	  /* by stack */
	MAP_OF(struct study_line) lines;  /* by signs_line */
	MAP_OF(struct study_size) before; /* by size */
	bool settled;
	bool makes_state; /* an optimizer made some of what lives */
	bool mixed;	  /* more blocks of one size are old than a model and its state have */
	MAP_OF(struct study_thread) threads;
	struct study_maker *makers; /* of leaves, by their number */
	size_t maker_count, maker_room;
	struct study_swap made[STUDY_SWAPS];
	uint32_t made_count; /* in all; the latest are there */
	MAP_OF(struct study_birth)
	reduced;		    /* by stack: the latest that gradients were reduced into */
	struct study_birth *loaded; /* not settled yet */
	size_t loaded_count, loaded_room;
	uint32_t loaded_steps;	     /* optimizer steps that had begun at the latest of them */
	struct forward_pass *passes; /* by their number */
	size_t pass_count, pass_room;
	struct map graph_paths;		 /* module path -> 1: backward freed a block made there */
	uint32_t backward_over;		 /* the latest backward pass that is known to be over */
	uint64_t grads_gone, grads_kept; /* bytes of gradients that backward freed, or not */
	uint64_t buckets;		 /* bytes that data parallelism made for them */
	struct study_left left;		 /* without tags */
	struct study_work work;
	uint64_t *updates; /* seq of the latest update of a leaf before each backward pass, */
	size_t update_count, update_room;
	uint32_t updated; /* in which so many had begun */
};

/* Before the first event: m notes what classes need, and frees it in the end. */
void study_begin(struct model *m);
/* All facts about a moment's block, and the conclusions. */
void study_history(const struct study *st, const struct block *b, struct history *h);

/* habits.c */
void study_habits_died(struct study *st, const struct history *h);
bool study_has_habit(const struct study *st, uint32_t stack, enum habit habit);
/* Born in backward, after one or ahead of it in a Function, freed where gradients are cleared. */
bool study_was_cleared(const struct study *st, const struct history *h);
/* Born in one forward pass, freed inside a later one: its successor took over. */
bool life_went_on(const struct history *h);
bool life_was_kept(const struct history *h); /* or after that pass */

/* sets.c */
void study_sets_leaf(struct study *st, const struct history *h);	     /* it is a leaf */
struct history *study_alive(struct study *st, const struct study_birth *at); /* NULL: it is over */
void study_sets_born(struct study *st, const struct history *h);
void study_gradient_size(struct study *st, uint64_t size);
/* One more; `about`: sizes that study_as_large takes for one are one. */
void study_count_size(struct study_sizes *s, uint64_t size, bool about);
/* A large block may keep a rest of up to 1 MiB that was not worth splitting off. */
bool study_as_large(uint64_t a, uint64_t b);
bool study_size_is_of_weight(const struct study *st, uint64_t size); /* or of a gradient */
bool study_size_is_of_copy(const struct study *st, uint64_t size);   /* or in twice the precision */
bool study_has_model(const struct study *st);			     /* modules made some */
/* Most blocks that this stack made outside are as large as a parameter each, and not all alike. */
bool study_is_of_a_set(const struct study *st, uint32_t stack);
bool study_is_for_each_layer(const struct study *st, uint32_t stack);
/* They gather from pass to pass: something keeps them all. */
bool study_gathers(const struct study *st, uint32_t stack);
/* Between two passes as many as a network has. */
bool study_is_of_network(const struct study *st, uint32_t stack);
/* Before each of several passes, and most often with no backward pass between two of them. */
bool study_makes_many(const struct study *st, uint32_t stack);

/* lines.c */
void study_lines_born(struct study *st, const struct history *h);
/* Its line made it before the first pass with many others, of some sizes more than of others, and
 * none later. */
bool study_is_of_many(const struct study *st, const struct history *h);
/* And so many of some sizes as a network has layers: before a second pass nothing else tells its
 * weights from a batch. */
bool study_is_of_layers(const struct study *st, const struct history *b);

/* loaded.c */
void study_loaded_born(struct study *st, const struct history *h);
void study_loaded_over(struct study *st);

/* predecessors.c */
void study_predecessors_born(struct study *st, struct history *h);
void study_predecessors_died(struct study *st, const struct history *h, const struct gmt_event *e);
void study_leaf(void *ctx, uint32_t leaf, const struct history *h); /* its memory; NULL: unknown */
void study_leaf_moved(void *ctx, uint32_t leaf, struct history *h); /* into other memory */

/* forward_passes.c */
void study_passes_born(struct study *st, struct history *h);
void study_passes_died(struct study *st, const struct history *h);
void study_backward_over(void *ctx, const struct gmt_event *e);
/* NULL if nothing was made in it or before it. */
const struct forward_pass *study_pass_of(const struct study *st, uint32_t number);
/* The script's own part of a graph had begun when it made the block. */
bool study_is_of_graph(const struct study *st, const struct history *h);
/* Most of what it made outlived it, and no backward pass freed any; or was there too when the next
 * backward pass began. */
bool pass_keeps_graph(const struct forward_pass *p);
bool pass_keeps_much(const struct forward_pass *p); /* a third or more */
bool pass_takes_graph_on(const struct forward_pass *p);
/* The result of a pass, in twice the precision or half. */
bool pass_returned(const struct forward_pass *p, uint64_t size);
/* Backward frees what these frames make, whoever called the module. */
bool study_path_is_of_graph(const struct study *st, uint32_t module_path);

/* rule_uses.c */
void study_used(void *ctx, struct history *h, uint32_t work, uint32_t before);
void study_uses_died(struct study *st, const struct history *h);
/* While it lived, an update of leaves was made without it. */
bool study_passed_over(const struct study *st, const struct history *h);

/* rule_before.c */
void study_old_end(struct study *st, const struct history *h);
void study_settle_old(struct study *st);
/* The block was there before the recording began, and its maker is unknown. */
bool study_is_old(const struct study *st, const struct history *h);
