/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a recording's events, and whether what they refer to is there. */
#ifndef VIEWER_TALLY_H
#define VIEWER_TALLY_H

#include "recording.h"

#define TALLY_KINDS 64

struct tally {
	const struct defs *defs;
	uint64_t events;
	uint64_t kinds[TALLY_KINDS];		 /* unknown kinds are in kinds[0] */
	uint64_t dropped;			 /* events that the program could not keep */
	uint64_t left_out;			 /* of them on purpose, to stay within a bound */
	uint64_t missing;			 /* numbers in the sequence that no event has */
	uint64_t disorder;			 /* events out of order */
	uint64_t no_stack, no_string, no_thread; /* references to what is not defined */
	uint64_t last_seq;
	uint64_t first_ns, last_ns;
};

int tally_event(void *ctx, const struct gmt_event *e);

#endif
