/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the events of a recording that can be left out: those whose effect ends before the next
 * event that stays. A block that is allocated and freed within a range is left out, with both
 * events and its tags. Of facts that replace one another the last stays. So the memory that is
 * alive at the end of a range, with stacks and tags, is exact. THINNED records replace the rest:
 * the number of events, and the highest total among them.
 *
 * Two passes over all events in order: thin_look, then thin_pass. One at a time; the drain's
 * thread; memory by os_map, 32 bytes for each block that is alive at a time.
 */
#pragma once

#include "../../format/event.h"

#define THIN_RANGES 48

struct thin_plan {
	struct {
		uint64_t first, last; /* seq */
	} ranges[THIN_RANGES];	      /* in order */
	uint32_t count;
	unsigned level; /* 0: a THINNED record for each phase of a step; each further level: a
			   quarter of them */
};

#define THIN_LEVELS 6
#define THIN_LEVEL_RANGES \
	3 /* from this level on, ranges of the program and uses are left out too */

struct thin_sums {
	uint64_t events, allocs;    /* left out, in all thinnings */
	uint64_t first_ns, last_ns; /* of the first and the last THINNED record */
};

struct thin_out {
	int (*event)(void *ctx, const struct gmt_event *e);
	void *ctx;
};

bool thin_begin(const struct thin_plan *plan);
bool thin_look(const struct gmt_event *e); /* false: no memory */
bool thin_turn(void);			   /* after the first pass; false: no memory */
int thin_pass(const struct gmt_event *e, const struct thin_out *out);
int thin_finish(const struct thin_out *out, struct thin_sums *sums);
void thin_end(void);
