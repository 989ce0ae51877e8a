/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of use, by the line that allocated the blocks: what DrGPUM calls inefficient. They are
 * facts of the recording, not changes: a weight that waits for the next step is idle, too. Needs
 * all uses.
 */
#pragma once

#include "../recording/owners.h"

struct timeline;

enum pattern { PATTERN_LATE, PATTERN_EARLY, PATTERN_IDLE, PATTERN_NEVER, PATTERN_LOST, PATTERNS };

/* Assumed of a copy in one direction: pinned memory behind PCIe 4.0 x16. */
#define PATTERNS_COPY_RATE 25000000000u /* bytes a second */

struct pattern_line {
	enum pattern pattern;
	struct owner owner;
	uint64_t blocks, bytes, at_peak, largest;
	uint64_t shortest, longest; /* ns in the pattern, of one block */
	uint64_t copy_ns;	    /* of PATTERN_IDLE: there and back, at once what is idle then */
};

struct patterns {
	bool known;		    /* the recording has all uses */
	struct pattern_line *items; /* most bytes at the peak first */
	size_t count, room;
};

void patterns_find(struct patterns *p, struct timeline *t);
void patterns_free(struct patterns *p);
