/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of lives: a narrow row for every allocation of any layer, dead or alive, in order of
 * birth; beside it what few lives have (notes), and what many lives share: size and stack
 * (requests), what threads were doing (positions), what autograd and others said (facts). Changes
 * of a life (saved, released, over) stand in one row of bytes in order of events. No name, no rule
 * and no guess is in here: what classes/study.h concludes from other lives stands in its own table.
 *
 * A question about a moment is a scan: born at or before it, and not dead at it.
 */
#pragma once

#include "../../format/event.h"
#include "device_levels.h"
#include "rows.h"

/* What autograd says of a block. */
enum block_tag {
	BLOCK_LEAF = 1 << 0,	 /* a leaf that requires grad lies in it */
	BLOCK_GRAD = 1 << 1,	 /* a parameter's gradient arrived in it */
	BLOCK_DETACHED = 1 << 2, /* it was a leaf only while a graph had it saved: a cut graph */
	BLOCK_PLAIN = 1 << 3,	 /* saved, and no differentiable operation had made it */
	BLOCK_GRAPH = 1 << 4,	 /* saved, and one had */
	BLOCK_PACKED = 1 << 5,	 /* saved through a hook: its release is not recorded */
	BLOCK_HELD = 1 << 6, /* and the next ones: enum gmt_held - 1, what the program says it is */
	BLOCK_HELD_LAST = 1 << 10,
};

/* What its thread was doing at a block's birth or death. */
enum block_stage {
	STAGE_OUTSIDE,	 /* nothing of the following */
	STAGE_FORWARD,	 /* inside the call of a module */
	STAGE_BACKWARD,	 /* a backward node */
	STAGE_RECOMPUTE, /* a forward pass inside a backward node */
	STAGE_ZERO_GRAD,
	STAGE_OPTIMIZER,
	STAGES
};

/* Where a life was made, or ended: times of lives count from the position's. */
struct position {
	uint64_t seq, ns;
	uint64_t step, stream; /* from here on: what lives share */
	uint32_t thread, forwards, backwards, steps;
	int32_t device;
	uint16_t flags, memory;
	uint8_t stage, layer;
	bool after_forward, after_step;
	bool in_node, asked; /* a backward node ran; for torch.autograd.grad */
	bool counts;	     /* it takes room on a device */
	uint8_t none;
};

_Static_assert(sizeof(struct position) == 64, "compared by bytes");

enum life_layer { LIFE_BLOCK, LIFE_MEMORY, LIFE_PHYSICAL, LIFE_MAPPED };

struct life_moment {
	uint32_t position; /* 0: not yet */
	uint32_t seq, ns;  /* more than the position's */
} __attribute__((packed));

/* What many lives are alike in. */
struct life_request {
	uint64_t size;
	uint32_t stack, name;
};

struct life {
	uint64_t addr;
	struct life_moment born, died;
	uint32_t request;
	uint32_t died_stack;
	uint32_t note; /* 0 = none */
	uint32_t uses; /* its row in the table of uses (life_uses.h), 0 = none was seen */
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct life) == 48, "many of them");

/* What every third life has; but for its times many have the same. */
struct life_facts {
	uint64_t save_ns, grad_ns, leaf_ns; /* when that was first said, 0 = never */
	uint64_t handle;		    /* of a mapping: the physical memory behind it */
	uint64_t unused; /* 1 + bytes of the block that the largest storage in it leaves */
	uint32_t save_backwards, save_steps; /* from its birth to its first saving */
	uint32_t leaf_passes;		     /* in which it was a leaf, */
	uint32_t arrivals;		     /* and of gradients for it */
	uint32_t tags;			     /* enum block_tag */
	uint32_t pool; /* the private pool that it lies in (private_pool.h), 0 = none */
};

_Static_assert(sizeof(struct life_facts) == 64, "compared by bytes");

/* The times stand here: without them the facts of many lives are alike. */
struct life_note {
	uint64_t save_ns, grad_ns, leaf_ns;
	uint32_t facts;
} __attribute__((packed, aligned(4)));

enum life_change {
	CHANGE_NONE,
	CHANGE_DIED,
	CHANGE_SAVED_FIRST,
	CHANGE_SAVED,
	CHANGE_RELEASED,
	CHANGE_BACKWARD_OVER,
	CHANGE_FILLED, /* a bucket holds gradients, */
	CHANGE_EMPTIED,
	CHANGE_SLEPT, /* its physical memory was given back, */
	CHANGE_WOKE,  /* and is there again */
	CHANGE_BORN,  /* of lives_walk only */
};

/* What is true of a life at a moment only, made of its changes up to it. */
enum life_state {
	LIFE_SAVED = 1 << 0,	       /* a graph holds it */
	LIFE_SAVED_BEFORE = 1 << 1,    /* or did */
	LIFE_BACKWARD_OVER = 1 << 2,   /* without tags: so is the backward pass of its pass */
	LIFE_HOLDS_GRADIENTS = 1 << 3, /* a bucket: they have arrived in it */
	LIFE_ASLEEP = 1 << 4,	       /* it takes no room */
	LIFE_STATES = 1 << 5
};

/* An event that changes no life and yet is shown: a range that begins or ends, a mark, a refusal,
 * the end of a context; GMT_BLOCK_ALLOC: the cache was emptied to make room for it. */
struct lives_mark {
	uint64_t seq, ns;
	uint64_t number; /* of a range; of a framework's refusal that of the step it came in */
	uint64_t size, stream;
	uint32_t name, thread, stack;
	int32_t device;
	uint16_t kind; /* enum gmt_kind */
	uint16_t flags;
	uint8_t stage; /* enum block_stage: what its thread was doing */
	uint16_t pool; /* of a refusal: the private pool that it was asked of, 0 = none */
};

/* A gradient arrived in it. */
struct lives_arrival {
	uint64_t seq;
	uint32_t life, leaf; /* leaf: 1 + the life that its parameter lies in, 0 = not known */
} __attribute__((packed, aligned(4)));

/* Saved for backward once more while it still was, with a small block made in between. */
struct lives_retaken {
	uint64_t seq;
	uint32_t life;
} __attribute__((packed, aligned(4)));

#define LIVES_SMALL 512 /* bytes of a scalar's block */

struct lives_writer {
	uint64_t seq, ns;
	uint32_t life;
};

/* So many rows one behind the other: how many of them ended, and after which event the last did. A
 * moment after it passes over all of them where none is left. */
#define LIVES_RUN 256

struct lives_run {
	uint64_t last;
	uint32_t ended;
};

struct lives_recent {
	uint32_t positions[ROWS_RECENT], requests[ROWS_RECENT], facts[ROWS_RECENT];
};

/* Pointers to lives are good until chunks_rest; those to marks, positions, requests and facts as
 * long as the table. */
struct lives {
	struct chunk_pool *pool;
	struct row_store rows, marks, arrivals, retaken, runs;
	struct row_store positions, requests, notes, facts; /* row 0 is none */
	struct lives_recent *recent;
	struct levels levels;
	struct packed changes;
	struct lives_writer last; /* of the changes */
};

void lives_init(struct lives *l);
void lives_free(struct lives *l);

static inline const struct life *lives_at(const struct lives *l, uint32_t i)
{
	return rows_at(&l->rows, i);
}

static inline const struct position *lives_position(const struct lives *l, uint32_t i)
{
	return rows_at(&l->positions, i);
}

static inline const struct life_request *lives_request(const struct lives *l,
						       const struct life *life)
{
	return rows_at(&l->requests, life->request);
}

/* The position that says what `as` says, seen at as->seq and as->ns: one from before if it fits. */
struct life_moment lives_moment(struct lives *l, const struct position *as);
uint32_t lives_add(struct lives *l, const struct life_request *r); /* the row's number */
uint32_t lives_born_by(const struct lives *l, uint64_t seq);	   /* how many: the first ones */
void lives_put_facts(struct lives *l, struct life *life, const struct life_facts *facts);
struct life_facts lives_facts(const struct lives *l, const struct life *life);
struct lives_mark *lives_add_mark(struct lives *l, const struct gmt_event *e,
				  enum block_stage stage);

static inline uint64_t lives_seq(const struct lives *l, const struct life_moment *m)
{
	return m->position ? lives_position(l, m->position)->seq + m->seq : 0;
}

static inline uint64_t lives_ns(const struct lives *l, const struct life_moment *m)
{
	return m->position ? lives_position(l, m->position)->ns + m->ns : 0;
}

/* A life, with what its row points to. */
struct lived {
	const struct life *row;
	const struct position *born, *died; /* died: the empty one if it did not end */
	uint64_t from, until;		    /* events; until: LIVES_OPEN = it did not end */
	uint64_t size;
	uint32_t stack, name;
};

#define LIVES_OPEN UINT64_MAX

static inline struct lived lives_read(const struct lives *l, uint32_t life)
{
	const struct life *row = lives_at(l, life);
	const struct life_request *request = lives_request(l, row);

	return (struct lived){ .row = row,
			       .born = lives_position(l, row->born.position),
			       .died = lives_position(l, row->died.position),
			       .from = lives_seq(l, &row->born),
			       .until = row->died.position ? lives_seq(l, &row->died) : LIVES_OPEN,
			       .size = request->size,
			       .stack = request->stack,
			       .name = request->name };
}

/* The latest life before the event that the stack asked for; UINT32_MAX = none. */
uint32_t lives_before(const struct lives *l, uint64_t seq, uint32_t stack);

/* Its end, in order of events: the position says the stage and the passes, no more. */
void lives_end(struct lives *l, uint32_t life, const struct position *at, uint32_t stack);
/* The first life from `i` on that may be there after the event, or that ended with it. */
uint32_t lives_skip(const struct lives *l, uint32_t i, uint64_t seq);

unsigned lives_state(unsigned before, enum life_change change); /* after it */

void lives_note(struct lives *l, enum life_change change, uint32_t life, uint64_t seq, uint64_t ns);

/* Changes in order; ns stands for none of CHANGE_DIED, whose time is in its row. */
struct lives_cursor {
	const struct lives *lives;
	struct packed_place place;
	enum life_change change; /* CHANGE_NONE: there are no more */
	struct lives_writer now;
};

void lives_first(struct lives_cursor *c, const struct lives *l);
void lives_next(struct lives_cursor *c);

/* Births and changes in order of events; of one event deaths come first. */
struct lives_walk {
	struct lives_cursor changes;
	uint32_t next;	   /* the life that is born next */
	uint64_t born_seq; /* when */
	enum life_change change;
	struct lives_writer now; /* ns too of a death */
};

void lives_walk_first(struct lives_walk *w, const struct lives *l);
void lives_walk_next(struct lives_walk *w);
/* The births before that life's are left out; changes of theirs still come. */
void lives_walk_skip(struct lives_walk *w, uint32_t life);
