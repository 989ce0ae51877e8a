/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lives of a device's blocks, from a series, for a page that must stay small: all blocks
 * that live at a key moment, and of the others those that hold most (bytes times the events they
 * lived through). What is left out is counted; the sums of all are the curve's.
 */
#ifndef VIEWER_PAGE_LIVES_H
#define VIEWER_PAGE_LIVES_H

#include "../moments/series.h"
#include "page_curve.h"

#define LIVES_KEYS 24

/* From `seq` on the block was of this class, with the facts that a verdict needs. */
struct stretch {
	uint64_t seq;
	uint16_t state; /* enum life_state */
	uint8_t category;
};

struct page_life {
	struct block block; /* all that was known of it in the end */
	uint32_t died_stack, died_thread;
	bool gone; /* left out */
	struct stretch first, *more;
	uint32_t more_count;
	size_t more_room;
};

/* A moment that the page has all blocks of: after the event `seq`. */
struct key_moment {
	uint64_t seq, time_ns;
	const char *name; /* "peak", "oom", "end", "step" */
	size_t number;	  /* of a step */
	struct point at;
};

struct page_lives {
	int device;
	uint64_t last_seq; /* of the recording */
	size_t limit;	   /* lives to keep */
	struct key_moment keys[LIVES_KEYS];
	size_t key_count;

	struct page_life *items; /* in order of birth */
	size_t count, room;
	uint64_t blocks, left_out; /* how many there were; of them not kept */
	struct map alive;	   /* seq of birth -> index */
	uint32_t *pending;	   /* indices of those that end with the event at hand */
	size_t pending_count, pending_room;
};

/* device, last_seq, limit and keys are set. In the order of the series' calls: */
void lives_change(struct page_lives *l, const struct series_change *c);
void lives_event(struct page_lives *l, const struct gmt_event *e, const struct model *m);
void lives_finish(struct page_lives *l);
void page_lives_free(struct page_lives *l);

const struct stretch *lives_stretch(const struct page_life *life, size_t i); /* 0 = the first */
/* The block as a moment's copy would be in that stretch, for classify. */
struct block lives_copy(const struct page_life *life, size_t i, const struct model *m);

#endif
