/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a device for a page that must stay small: all blocks alive at a key moment, and of
 * the others those with the most bytes times events. The others are counted, and the curve includes
 * their bytes.
 */
#pragma once

#include "../moments/series.h"
#include "page_curve.h"

#define LIVES_KEYS 28

/* From event `seq` on the block has this class, and this state for its verdict. */
struct stretch {
	uint64_t seq;
	uint32_t next; /* of the same life, 0 = none */
	uint8_t state, category;
};

struct page_life {
	uint32_t life;
	uint32_t first, last; /* its stretches, 0 = none yet */
};

/* A moment, after event `seq`, of which the page has all blocks. */
struct key_moment {
	uint64_t seq, time_ns;
	const char *name; /* "peak", "oom", "end", "step", "finding" */
	size_t number;	  /* of a step or of an out-of-memory event */
	struct point at;
};

struct page_lives {
	struct model *model;
	int device;
	size_t limit; /* lives to keep */
	struct key_moment keys[LIVES_KEYS];
	size_t key_count;
	struct key_moment *key_order[LIVES_KEYS]; /* by their events */
	size_t key_next;			  /* the first that the series has not reached */

	struct page_life *items; /* in order of birth */
	size_t count;
	uint64_t left_out;
	uint64_t *chosen;	   /* a bit for each life */
	struct stretch *stretches; /* from 1 on */
	size_t stretch_count, stretch_room;
};

/* Set model, device, limit and keys first. any: false = no blocks. */
void page_lives_choose(struct page_lives *l, bool any);
/* Call in the order of the series. */
void lives_change(struct page_lives *l, const struct series_change *c);
void page_lives_free(struct page_lives *l);
