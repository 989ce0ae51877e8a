/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line whose results take most of a moment's memory, with a change that fits its operation:
 * where to look first if no other finding suggests a change.
 */
#pragma once

#include "../moments/snapshot.h"
#include "../recording/owners.h"

#define LARGE_LINE_TEXT 600
#define LARGE_LINE_ALL	(2 * LARGE_LINE_TEXT + 40) /* both in one text */

struct large_line {
	struct owner owner;
	uint32_t stack; /* of the largest block, 0 = do not read its variables */
	uint64_t seq;	/* event at which the variables are read */
	uint64_t from;	/* event of the largest block */
	uint64_t size;	/* of the largest block, 0 = the variables are of its call */
	uint64_t bytes;
	size_t blocks;
	bool call;		      /* the results of a call of the model */
	bool saved;		      /* most of it is saved for backward */
	bool unsaved;		      /* no graph holds any of it */
	bool mixes;		      /* a batch normalization computes with all rows at once */
	bool known_only;	      /* no change for operations that the table does not have */
	char text[LARGE_LINE_TEXT];   /* a sentence about the line, with its statement if known */
	char change[LARGE_LINE_TEXT]; /* for the operation, else a general one; "" = none */
};

/* Finds the line that made most results, else the line that called the model. False if no line has
 * a third of the memory about which anything is known. */
bool large_line_find(struct large_line *l, struct timeline *t, const struct snapshot *s);
/* Sums up the results of that line; without text and change. */
void large_line_of(struct large_line *l, struct timeline *t, const struct snapshot *s,
		   const struct owner *owner);
bool large_line_at_peak(struct large_line *l, struct timeline *t);
/* "Look at a.py:3 (y = x.repeat(9)): ...", for a request's line or one that was found, by l's
 * owner, stack, seq, blocks and saved; "" if the line is not known. */
void large_line_look(char text[LARGE_LINE_ALL], struct timeline *t, const struct large_line *l);
