/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that is still being written, looked at again and again: each look reads on where the
 * one before ended. Threads write side by side, so an event may come to light after others of a
 * higher number: the last moments of a living process wait for the next look, numbers that were
 * passed over are remembered, and where one of them comes all the same, all is read anew. What is
 * defined meanwhile is taken up as it comes; where a library was loaded, names are looked up anew.
 */
#pragma once

#include "timeline.h"

#define FOLLOWING_GAPS	  64	     /* the latest count */
#define FOLLOWING_SETTLED 100000000u /* ns after which an event is where it belongs */

struct following {
	struct recording recording;
	struct timeline timeline; /* as of the last look */
	/* Set these, and all else to zero: */
	const char *path;
	long device; /* < 0: the one with the highest peak */
	bool once;   /* one look: nothing waits */

	struct map defs; /* kind << 32 | id -> what was said, hashed */
	struct gap {
		uint64_t first, last;
	} gaps[FOLLOWING_GAPS];
	size_t gap_count;
	uint64_t seq, ns;     /* of the last event */
	uint64_t wait_ns;     /* events from here on wait */
	bool waiting;	      /* one did */
	bool open, stale;     /* stale: has to be read anew */
	bool new_names;	      /* of libraries or their functions */
	uint64_t whole_reads; /* how often that was */
};

/* 0, or a sentence was said and the exit code, and it is closed. */
int following_look(struct following *f);
void following_close(struct following *f);
