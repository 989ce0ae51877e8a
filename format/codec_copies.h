/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of events that equal an earlier stretch of their group: steps of a program repeat. They
 * are written as a reference to it, and times and objects of tags (FORMAT.md, section 4.7). Pure:
 * no allocation, no state but the caller's.
 */
#pragma once

#include "codec.h"

#define GMT_COPIES_PAST	    32768u /* events that are kept; a power of two */
#define GMT_COPIES_CONTEXTS 32768u

/* A reference: the next `left` events equal those `distance` before them. */
struct gmt_copy {
	uint32_t distance, left;
	uint32_t run;	     /* events since it began, 0 = the latest event is no copy */
	uint32_t more_scope; /* is added to every scope but 0 */
	uint64_t more_range; /* is added to the numbers of ranges */
	uint64_t of_seq;     /* decoder only: seq of the first event that is copied */
};

/* The latest events of the group. All but `count` and `copy` may be left over from another one. */
struct gmt_past {
	uint32_t count; /* events in the group so far */
	struct gmt_copy copy;
	struct {
		struct gmt_event event;
		unsigned fields; /* enum gmt_field */
	} items[GMT_COPIES_PAST];
};

/* The encoder's part: finds the stretches. */
struct gmt_copies {
	struct gmt_past past;
	bool scopes, ranges;		  /* more_scope, more_range are known */
	uint64_t before[2];		  /* hashes of the last two events */
	uint32_t at[GMT_COPIES_CONTEXTS]; /* place of the latest event, by its hash and theirs */
};

/* Like gmt_encode_columns, but fewer than GMT_COPIES_KEPT events are kept until gmt_copies_end: a
 * shorter stretch takes no fewer bytes as a copy. */
#define GMT_COPIES_KEPT 32u
void gmt_copies_begin(struct gmt_copies *s); /* a new group, from zeros or from another one */
void gmt_copies_add(struct gmt_copies *s, struct gmt_codec *c, const struct gmt_event *e,
		    uint8_t *at[GMT_COLUMNS]);
void gmt_copies_end(struct gmt_copies *s, struct gmt_codec *c, uint8_t *at[GMT_COLUMNS]);

/* 0 or -GMT_ERR_*. Begin a group with count = 0, and each block with copy.left = 0. p->copy says
 * whether the event is one of a stretch, and of which. */
int gmt_decode_copies(struct gmt_past *p, struct gmt_codec *c, struct cursor *in,
		      struct gmt_event *out);
