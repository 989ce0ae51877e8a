/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line whose results take most of a moment's memory, with what is known of its operation: what
 * to look at first where no other finding says what to change.
 */
#pragma once

#include "../moments/snapshot.h"
#include "../recording/owners.h"

#define LARGE_LINE_TEXT 600
#define LARGE_LINE_ALL	(2 * LARGE_LINE_TEXT + 40) /* both in one text */

struct large_line {
	struct owner owner;
	uint32_t stack; /* of the largest block, which was made after that event, */
	uint64_t seq;	/* for its variables; a stack of 0: they are not asked for */
	uint64_t bytes;
	size_t blocks;
	bool saved;		      /* for backward, most of it */
	char text[LARGE_LINE_TEXT];   /* in a sentence, with the statement, if it is known */
	char change[LARGE_LINE_TEXT]; /* by the statement's operation, else in general */
};

/* The line that made them, else the one that called the model. False: none is a third of it, but
 * for weights and what belongs to them. */
bool large_line_find(struct large_line *l, struct timeline *t, const struct snapshot *s);
/* The results that the line made, and the largest one's stack. */
void large_line_of(struct large_line *l, struct timeline *t, const struct snapshot *s,
		   const struct owner *owner);
bool large_line_at_peak(struct large_line *l, struct timeline *t);
/* "Look at a.py:3 (y = x.repeat(9)): ...": of a request's line or of one that was found, by its
 * owner, blocks and saved; "" if its line is not known. */
void large_line_look(char text[LARGE_LINE_ALL], struct timeline *t, const struct large_line *l);
