/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of memory by work on the device: kernels, copies, sets, collectives, CUDA graphs. Each piece
 * of work ("a work") is a narrow row, and the lives that it can touch are packed in the same order.
 * A life that was used has a row with its first and last use, so that most questions need no scan.
 * An address belongs to the block that is alive there when the work is launched.
 */
#pragma once

#include "../../format/event.h"
#include "../base/map.h"
#include "device_levels.h"
#include "rows.h"

struct model;
struct history;

#define USES_UNKNOWN UINT64_MAX
#define USES_ROW     11 /* lives in a row of places */

struct use_work {
	uint64_t seq, ns;
	uint32_t kind; /* its row in `kinds` */
} __attribute__((packed, aligned(4)));

/* What many works have in common. */
struct use_kind {
	uint64_t stream;
	uint32_t name; /* STRING of the kernel or the API function, 0 = a CUDA graph */
	uint32_t node; /* STRING of the backward node that ran on the thread */
	uint32_t stack, thread;
	uint16_t kind, transfer; /* enum gmt_kind, enum gmt_transfer */
	uint32_t none;
};

_Static_assert(sizeof(struct use_kind) == 32, "compared by bytes");

/* The uses of one life. first, last, pause and resume are rows of works, 0 = none. */
struct life_uses {
	uint32_t first, last, count;
	uint32_t pause, resume; /* works before and after the longest pause in time */
	uint32_t widest;	/* the most works between two uses */
};

struct use_graph {
	uint64_t *places;
	size_t count, room;
	bool sorted;
};

/* Copies and sets into a life that the next one overwrote, with no launch in between that could
 * have read the bytes. */
struct use_lost {
	uint64_t bytes, ns; /* ns: the longest time between the two */
};

/* Number of launches, and of those whose parameters could not be read. */
struct use_tally {
	uint64_t launches, unread;
	struct map graphs; /* handle -> 1 = not all of its nodes could be read */
};

void use_tally_event(struct use_tally *t, const struct gmt_event *e);

struct uses {
	struct row_store works, kinds, lives; /* row 0 is none */
	struct packed places;
	uint32_t last_work, last_life; /* of the last row of places */
	struct uses_recent *recent;    /* NULL = no use was recorded */
	struct map threads;	       /* thread -> work of its latest launch, 0 = none */
	MAP_OF(struct use_graph) graphs;
	int device; /* where the last block was found */
	struct use_tally tally;
	MAP_OF(struct use_lost) lost; /* by life */
	bool blind;		      /* CUDA graphs were captured, but not what they use */
	uint64_t thinned_from,
		thinned_to; /* ns: when a bounded recording left uses out, 0 = never */
	bool thinned_ends;  /* it kept the first and the last use of each life */
};

void uses_init(struct uses *u, struct chunk_pool *pool);
void uses_free(struct uses *u);
/* Adds a row of n lives that a work touches. A work can have several rows. */
void uses_add_row(struct uses *u, uint32_t work, const uint32_t lives[USES_ROW], unsigned n);
/* Writes or rewrites the life's row of uses; *row is its number, 0 = it has none yet. */
void uses_keep(struct uses *u, const struct history *h, uint32_t *row);
/* To call after the last event read so far. */
void uses_settle(struct model *m);

static inline const struct use_work *uses_work(const struct uses *u, uint32_t row)
{
	return rows_at(&u->works, row);
}

static inline const struct use_kind *uses_kind(const struct uses *u, uint32_t work)
{
	return rows_at(&u->kinds, uses_work(u, work)->kind);
}

/* True if uses were recorded: not in imports, older recordings or with GPUMEMTRACE_USES=off. */
bool uses_known(const struct model *m);
/* True if all uses were recorded, so that a block without uses was not used. */
bool uses_complete(const struct model *m);

/* All that is known about a life's uses. */
struct block_uses {
	bool known; /* else the rest is 0 */
	bool whole; /* else the count is too low, and pauses are not known */
	uint64_t count, first_ns, last_ns;
	uint64_t first_seq, last_seq;
	uint64_t pause_ns, pause_from_ns; /* the longest, 0 = at most one use */
	struct life_uses works;
};

void uses_of(const struct model *m, uint32_t life, struct block_uses *out);
/* Whether the work is known to be the first that uses the life. */
bool uses_begin(const struct model *m, uint32_t life, uint32_t work);

/* The last use up to an event and the next one after it, as rows of works, 0 = none. */
struct use_around {
	bool known;
	uint32_t before, after;
};

struct moment;

/* One entry for each of the moment's blocks. The caller frees the array. */
struct use_around *uses_around(const struct model *m, const struct moment *mo);
/* Uses of a moment's block after that moment. */
enum use_future {
	FUTURE_USED,	/* it is used again, was never used, or uses are not known */
	FUTURE_OVER,	/* not used again before its free or the program's end, long after */
	FUTURE_REFUSED, /* not used again before memory ran out or the recording ended */
};

/* refused: the result of uses_refused for that moment. */
enum use_future uses_future(const struct model *m, const struct moment *mo, uint32_t life,
			    uint64_t refused);
/* Number of works from its last use to the event. */
uint32_t uses_passed(const struct model *m, const struct life_uses *x, uint64_t seq);
/* True if these are at most twice its longest earlier wait, so that it might be used again. */
bool uses_waits(const struct model *m, const struct life_uses *x, uint64_t seq);
/* The first event from the moment on in which its device ran out of memory, UINT64_MAX = none. */
uint64_t uses_refused(const struct model *m, const struct moment *mo);

/* Cache for questions about many lives: memory ran out first at `next`, searched from `from` on. */
struct use_refusals {
	uint64_t from, next; /* events; next 0 = not searched yet */
};

/* True if the life was used, and is FUTURE_OVER after its last use. */
bool uses_end(const struct model *m, int device, uint32_t life, struct use_refusals *r);

/* Most bytes in use at once if each block of the device lived from its first to its last use;
 * USES_UNKNOWN if uses are missing. Blocks without a use keep their whole life. */
uint64_t uses_bound(const struct model *m, int device);

/* The pieces of work in order, with the lives that each touches. */
struct uses_cursor {
	const struct uses *uses;
	struct packed_place place;
	uint32_t work, life; /* of the latest row */
	uint32_t lives[USES_ROW], count;
};

void uses_first(struct uses_cursor *c, const struct uses *u);
bool uses_next(
	struct uses_cursor *c); /* false: there are no more; one work may have several rows */
