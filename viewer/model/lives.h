/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of lives: a narrow row for every allocation of any layer, live or freed, in order of
 * birth. Other tables hold what few lives have (notes) and what many lives share: size and stack
 * (requests), activity of the thread (positions), facts from autograd and others (facts). Changes
 * of lives (saved, released, freed) are packed in order of events. Only recorded facts are in here:
 * what classes/study.h concludes from other lives is in its own table. The blocks of a moment are
 * found by a scan: born at or before it, and not yet dead.
 */
#pragma once

#include "../../format/event.h"
#include "device_levels.h"
#include "rows.h"

/* What autograd and the program's objects say about a block. */
enum block_tag {
	BLOCK_LEAF = 1 << 0,	 /* a leaf that requires grad lies in it */
	BLOCK_GRAD = 1 << 1,	 /* a parameter's gradient arrived in it */
	BLOCK_DETACHED = 1 << 2, /* a leaf only where checkpointing cut the graph */
	BLOCK_PLAIN = 1 << 3,	 /* saved, and not made by a differentiable operation */
	BLOCK_GRAPH = 1 << 4,	 /* saved, and made by a differentiable operation */
	BLOCK_PACKED = 1 << 5,	 /* saved through a hook: its release is not recorded */
	BLOCK_HELD = 1 << 6,	 /* and the next ones: enum gmt_held, from the program's objects */
	BLOCK_HELD_LAST = 1 << 10,
};

/* Activity of the thread at a block's birth or death. */
enum block_stage {
	STAGE_OUTSIDE,	 /* none of the following */
	STAGE_FORWARD,	 /* inside the call of a module */
	STAGE_BACKWARD,	 /* a backward node */
	STAGE_RECOMPUTE, /* a forward pass inside a backward node */
	STAGE_ZERO_GRAD,
	STAGE_OPTIMIZER,
	STAGES
};

/* Activity of a thread when a life began or ended. Lives store their times as offsets from it. */
struct position {
	uint64_t seq, ns;
	uint64_t step, stream; /* this and the fields below are compared when lives share */
	uint32_t thread, forwards, backwards, steps;
	int32_t device;
	uint16_t flags, memory;
	uint8_t stage, layer;
	bool after_forward, after_step;
	bool in_node, asked; /* a backward node ran; torch.autograd.grad called it */
	bool counts;	     /* its bytes count on a device */
	uint8_t none;
};

_Static_assert(sizeof(struct position) == 64, "compared by bytes");

enum life_layer { LIFE_BLOCK, LIFE_MEMORY, LIFE_PHYSICAL, LIFE_MAPPED };

struct life_moment {
	uint32_t position; /* 0 = it has not happened */
	uint32_t seq, ns;  /* offsets from the position's */
} __attribute__((packed));

/* What many lives have in common. */
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

/* What every third life has. Without the times, many lives have the same facts. */
struct life_facts {
	uint64_t save_ns, grad_ns, leaf_ns; /* first time, 0 = never */
	uint64_t handle;		    /* of a mapping: its physical memory */
	uint64_t unused; /* 1 + bytes of the block outside its largest storage, 0 = not known */
	uint32_t save_backwards, save_steps; /* begun from its birth to its first saving */
	uint32_t leaf_passes;		     /* backward passes in which it was a leaf */
	uint32_t arrivals;		     /* passes in which a gradient for it arrived */
	uint32_t tags;			     /* enum block_tag */
	uint32_t pool; /* the private pool that it lies in (private_pool.h), 0 = none */
};

_Static_assert(sizeof(struct life_facts) == 64, "compared by bytes");

/* A life's own times, and the row of its other facts, which many lives share. */
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
	CHANGE_FILLED,	/* a bucket begins to hold gradients */
	CHANGE_EMPTIED, /* a bucket holds none any more */
	CHANGE_SLEPT,	/* its physical memory was unmapped */
	CHANGE_WOKE,	/* and mapped again */
	CHANGE_BORN,	/* from lives_walk only, never stored */
};

/* State of a life at one moment, from its changes up to then. */
enum life_state {
	LIFE_SAVED = 1 << 0,	       /* a graph holds it */
	LIFE_SAVED_BEFORE = 1 << 1,    /* a graph holds it, or held it before */
	LIFE_BACKWARD_OVER = 1 << 2,   /* without tags: its pass's backward pass is over */
	LIFE_HOLDS_GRADIENTS = 1 << 3, /* a bucket in which gradients have arrived */
	LIFE_ASLEEP = 1 << 4,	       /* none of it is mapped */
	LIFE_STATES = 1 << 5
};

/* An event that changes no life but is shown: begin or end of a range, a mark, out of memory, the
 * end of a context. GMT_BLOCK_ALLOC: the cache was emptied to make room for this block. */
struct lives_mark {
	uint64_t seq, ns;
	uint64_t number; /* of the range; of the open step where the framework ran out of memory */
	uint64_t size, stream;
	uint32_t name, thread, stack;
	int32_t device;
	uint16_t kind; /* enum gmt_kind */
	uint16_t flags;
	uint8_t stage; /* enum block_stage of its thread */
	uint16_t pool; /* out of memory: the request's private pool, 0 = none */
};

/* A gradient arrived in a life. */
struct lives_arrival {
	uint64_t seq;
	uint32_t life, leaf; /* leaf: 1 + the life of its parameter, 0 = not known */
} __attribute__((packed, aligned(4)));

/* A life was saved for backward again while still saved, after a small block was allocated. */
struct lives_retaken {
	uint64_t seq;
	uint32_t life;
} __attribute__((packed, aligned(4)));

#define LIVES_SMALL 512 /* bytes of a block that holds a scalar */

struct lives_writer {
	uint64_t seq, ns;
	uint32_t life;
};

/* Rows of a run. Each run counts its lives that ended, so that a scan for a moment after the last
 * of these ends can skip a run in which all have ended. */
#define LIVES_RUN 256

struct lives_run {
	uint64_t last; /* event of the latest end */
	uint32_t ended;
};

struct lives_recent {
	uint32_t positions[ROWS_RECENT], requests[ROWS_RECENT], facts[ROWS_RECENT];
	uint32_t latest[2]; /* position of a life that does not count, and of one that does */
};

/* Pointers to lives are valid until chunks_rest, those to marks, positions, requests and facts as
 * long as the table. */
struct lives {
	struct chunk_pool *pool;
	struct row_store rows, marks, arrivals, retaken, runs;
	struct row_store positions, requests, notes, facts; /* row 0 is none */
	struct lives_recent *recent;
	struct levels levels;
	struct packed changes;
	struct lives_writer last;    /* the latest change */
	struct lives_writer *pieces; /* by piece of changes: the change before it */
	size_t piece_count, piece_room;
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

/* The moment as->seq, as->ns. Its position is an earlier one that equals `as`, if times allow. */
struct life_moment lives_moment(struct lives *l, const struct position *as);
uint32_t lives_add(struct lives *l, const struct life_request *r); /* the row's number */
uint32_t lives_born_by(const struct lives *l, uint64_t seq);	   /* number of lives */
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

/* A life with the rows that it refers to. */
struct lived {
	const struct life *row;
	const struct position *born, *died; /* died: empty if it did not end */
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

/* The latest life with this stack that was born before the event; UINT32_MAX = none. */
uint32_t lives_before(const struct lives *l, uint64_t seq, uint32_t stack);

/* Ends a life. To call in order of events; of `at` only times, stage and passes need be set. */
void lives_end(struct lives *l, uint32_t life, const struct position *at, uint32_t stack);
/* The first life from `i` on that is not in a run of lives that all ended before the event. */
uint32_t lives_skip(const struct lives *l, uint32_t i, uint64_t seq);

unsigned lives_state(unsigned before, enum life_change change); /* state after the change */

void lives_note(struct lives *l, enum life_change change, uint32_t life, uint64_t seq, uint64_t ns);

/* Changes in order of events. `ns` is not set for CHANGE_DIED: its time is in the life's row. */
struct lives_cursor {
	const struct lives *lives;
	struct packed_place place;
	enum life_change change; /* CHANGE_NONE = no more changes */
	struct lives_writer now;
};

void lives_first(struct lives_cursor *c, const struct lives *l);
void lives_next(struct lives_cursor *c);

/* Births and changes in order of events. In one event, changes of earlier lives come first. */
struct lives_walk {
	struct lives_cursor changes;
	uint32_t next;	   /* the life that is born next */
	uint64_t born_seq; /* when */
	enum life_change change;
	struct lives_writer now; /* its ns: lives_walk_ns */
};

void lives_walk_first(struct lives_walk *w, const struct lives *l);
void lives_walk_next(struct lives_walk *w);
/* Time of the current birth or change. A birth's and a death's row might be decompressed for it. */
uint64_t lives_walk_ns(const struct lives_walk *w);
/* Goes to the first birth or change at seq or later, which must not be behind. */
void lives_walk_jump(struct lives_walk *w, uint64_t seq);
/* Skips the births of earlier lives, but not their changes. */
void lives_walk_skip(struct lives_walk *w, uint32_t life);
