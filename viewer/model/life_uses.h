/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of memory by work on the device: kernels, copies, sets, collectives, CUDA graphs. Each piece
 * of work is a narrow row, and the lives that it can touch stand packed beside it in the same
 * order. A life that was used has a row of its first and last use, so that most questions need no
 * scan. A place in memory belongs to the block that is alive there when the work is launched.
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

/* What many launches are alike in. */
struct use_kind {
	uint64_t stream;
	uint32_t name; /* STRING of the kernel or the API function, 0 = a CUDA graph */
	uint32_t node; /* STRING of the backward node that ran on the thread */
	uint32_t stack, thread;
	uint16_t kind, transfer; /* enum gmt_kind, enum gmt_transfer */
	uint32_t none;
};

_Static_assert(sizeof(struct use_kind) == 32, "compared by bytes");

/* Rows of works; 0: none. */
struct life_uses {
	uint32_t first, last, count;
	uint32_t pause, resume; /* around the longest pause, by time */
	uint32_t widest;	/* the most works from one use to the next */
};

struct use_graph {
	uint64_t *places;
	size_t count, room;
	bool sorted;
};

/* Copies and sets of a life whose bytes the next copy or set replaced, with no launch in between
 * that could have read them. */
struct use_lost {
	uint64_t bytes, ns; /* ns: the longest from one to the other */
};

/* Launches, and those whose parameters could not be read. */
struct use_tally {
	uint64_t launches, unread;
	struct map graphs; /* handle -> not all of its nodes could be read */
};

void use_tally_event(struct use_tally *t, const struct gmt_event *e);

struct uses {
	struct row_store works, kinds, lives; /* row 0 is none */
	struct packed places;
	uint32_t last_work, last_life; /* of places */
	struct uses_recent *recent;    /* NULL: no use was seen */
	struct map threads;	       /* the latest launch of each */
	MAP_OF(struct use_graph) graphs;
	int device; /* of the block that was found last */
	struct use_tally tally;
	MAP_OF(struct use_lost) lost; /* by life */
	bool blind; /* CUDA graphs were captured, and nothing says what they use */
	uint64_t thinned_from,
		thinned_to; /* ns: a bounded recording left uses out; 0 = it did not */
	bool thinned_ends;  /* but the first and the last use of each life are there */
};

void uses_init(struct uses *u, struct chunk_pool *pool);
void uses_free(struct uses *u);
/* Lives that a work touches; a work may have several such rows. */
void uses_add_row(struct uses *u, uint32_t work, const uint32_t lives[USES_ROW], unsigned n);
/* The life's row is written or written again. */
void uses_keep(struct uses *u, const struct history *h, uint32_t *row);
/* The model has seen all events, for now. */
void uses_settle(struct model *m);

static inline const struct use_work *uses_work(const struct uses *u, uint32_t row)
{
	return rows_at(&u->works, row);
}

static inline const struct use_kind *uses_kind(const struct uses *u, uint32_t work)
{
	return rows_at(&u->kinds, uses_work(u, work)->kind);
}

/* Uses were recorded: an import, an older recording or GPUMEMTRACE_USES=off has none. */
bool uses_known(const struct model *m);
/* Also, nothing is missing among them: what has no use was not used. */
bool uses_complete(const struct model *m);

/* All that is known of a life's uses; works are rows. */
struct block_uses {
	bool known; /* else the rest is 0 */
	bool whole; /* else the count is too low, and pauses are not known */
	uint64_t count, first_ns, last_ns;
	uint64_t first_seq, last_seq;
	uint64_t pause_ns, pause_from_ns; /* the longest, 0 = used once at most */
	struct life_uses works;
};

void uses_of(const struct model *m, uint32_t life, struct block_uses *out);

/* The last use up to an event and the next one after it, as rows of works; 0: none. */
struct use_around {
	bool known;
	uint32_t before, after;
};

struct moment;

/* Of each of a moment's blocks. The caller frees it. */
struct use_around *uses_around(const struct model *m, const struct moment *mo);
/* The future of a moment's block that is used no more after it, though it was before. */
enum use_future {
	FUTURE_USED,	/* it is used again, or never was, or that is not known */
	FUTURE_OVER,	/* it is not: it is freed first, or the program ends long after */
	FUTURE_REFUSED, /* a refusal or the end of the recording comes first */
};

/* refused: uses_refused of that moment. */
enum use_future uses_future(const struct model *m, const struct moment *mo, uint32_t life,
			    uint64_t refused);
/* Work that passed it by, from its last use to the event. */
uint32_t uses_passed(const struct model *m, const struct life_uses *x, uint64_t seq);
/* That is not more than twice as much as it ever waited for. */
bool uses_waits(const struct model *m, const struct life_uses *x, uint64_t seq);
/* The first refusal on its device from the moment on, UINT64_MAX if there is none. */
uint64_t uses_refused(const struct model *m, const struct moment *mo);

/* For questions about many lives: the first refusal from that event on. */
struct use_refusals {
	uint64_t from, next; /* events; none from one to the other. next 0: not asked yet */
};

/* It was used, and nothing uses it after its last use. */
bool uses_end(const struct model *m, int device, uint32_t life, struct use_refusals *r);

/* Bytes in use at once if each block of the device lived from its first to its last use;
 * USES_UNKNOWN if uses are not known. Blocks without a use keep their whole life. */
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
