/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a recording that is still being written. Each look reads on from where the one before
 * ended. Threads write in parallel, so an event can appear after others with higher numbers. For
 * that reason the latest events of a living process wait for the next look, and skipped numbers are
 * remembered. If one of those appears after all, the whole file is read again. New definitions are
 * added as they appear; after a library was loaded, names are looked up again.
 */
#pragma once

#include "timeline.h"

#define FOLLOWING_GAPS	  64	     /* only the latest are remembered */
#define FOLLOWING_SETTLED 100000000u /* ns after which no earlier event is missing */

struct following {
	struct recording recording;
	struct timeline timeline; /* as of the last look */
	/* Set these, and all else to zero: */
	const char *path;
	long device; /* < 0: the one with the highest peak */
	bool once;   /* a single look, in which no event waits */

	struct map defs; /* kind << 32 | id -> hash of the definition */
	struct gap {
		uint64_t first, last;
	} gaps[FOLLOWING_GAPS];
	size_t gap_count;
	uint64_t seq, ns;     /* of the last event */
	uint64_t wait_ns;     /* events from this time on wait */
	bool waiting;	      /* an event is waiting */
	bool open, stale;     /* stale: the file must be read again */
	bool new_names;	      /* new libraries or functions were defined */
	uint64_t whole_reads; /* how often the whole file was read */
};

/* Reads on. 0, or an exit code after an error message, and it is closed. */
int following_look(struct following *f);
void following_close(struct following *f);
