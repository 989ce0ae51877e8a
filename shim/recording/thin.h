/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events of a recording may go: those whose effect ends before the next one that stays. In a
 * range of events, a block that was allocated and freed in it goes with both events and all that
 * was said of it, and of facts that replace one another the last stays. So what is alive at the end
 * of a range, with stacks and tags, follows from what stays, exactly. THINNED records stand for the
 * rest: how many, and the highest total among them.
 *
 * Two passes over all events in order: thin_look, then thin_pass. One at a time; the drain's
 * thread; memory by os_map, 32 bytes a block that is alive at a time.
 */
#pragma once

#include "../../format/event.h"

#define THIN_RANGES 48

struct thin_plan {
	struct {
		uint64_t first, last; /* seq */
	} ranges[THIN_RANGES];	      /* in order */
	uint32_t count;
	unsigned level; /* 0: a THINNED record for each phase of a step; each more: a quarter of
			   them */
};

#define THIN_LEVELS	  6
#define THIN_LEVEL_RANGES 3 /* from here on ranges of the program go too */

struct thin_sums {
	uint64_t events, allocs;    /* left out, ever */
	uint64_t first_ns, last_ns; /* between */
};

struct thin_out {
	int (*event)(void *ctx, const struct gmt_event *e);
	void *ctx;
};

bool thin_begin(const struct thin_plan *plan);
bool thin_look(const struct gmt_event *e); /* false: no memory */
bool thin_turn(void);			   /* all was looked at */
int thin_pass(const struct gmt_event *e, const struct thin_out *out);
int thin_finish(const struct thin_out *out, struct thin_sums *sums);
void thin_end(void);
