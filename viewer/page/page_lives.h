/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lives of a device's blocks, from a series, for a page that must stay small: all blocks
 * that live at a key moment, and of the others those that hold most (bytes times the events they
 * lived through). What is left out is counted; the sums of all are the curve's.
 */
#pragma once

#include "../moments/series.h"
#include "page_curve.h"

#define LIVES_KEYS 28

/* From `seq` on the block was of this class, with the facts that a verdict needs. */
struct stretch {
	uint64_t seq;
	uint32_t next; /* of the same life, 0 = none */
	uint8_t state, category;
};

struct page_life {
	uint32_t life;
	uint32_t first, last; /* its stretches, 0 = none yet */
};

/* A moment that the page has all blocks of: after the event `seq`. */
struct key_moment {
	uint64_t seq, time_ns;
	const char *name; /* "peak", "oom", "end", "step", "finding" */
	size_t number;	  /* of a step */
	struct point at;
};

struct page_lives {
	struct model *model;
	int device;
	size_t limit; /* lives to keep */
	struct key_moment keys[LIVES_KEYS];
	size_t key_count;
	struct key_moment *key_order[LIVES_KEYS]; /* by their events */
	size_t key_next;			  /* the first that is still to come */

	struct page_life *items; /* in order of birth */
	size_t count;
	uint64_t left_out;
	uint64_t *chosen;	   /* a bit for each life */
	struct stretch *stretches; /* from 1 on */
	size_t stretch_count, stretch_room;
};

/* model, device, limit and keys are set; `any`: blocks are wanted at all. */
void page_lives_choose(struct page_lives *l, bool any);
/* In the order of the series. */
void lives_change(struct page_lives *l, const struct series_change *c);
void page_lives_free(struct page_lives *l);
