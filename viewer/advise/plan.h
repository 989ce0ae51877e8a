/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device's curve would be with other lives: bytes that are not there for a while, and bytes
 * that are there in addition. The curve is computed anew at every event, so that the peak found is
 * the peak of that run, wherever it has moved to.
 */
#pragma once

#include "../moments/timeline.h"

#define PLAN_END  UINT64_MAX /* after the last event */
#define PLAN_NONE UINT32_MAX /* no life */

/* From the event `seq` on so many bytes more, or less, of a life (or, where it is not there, of a
 * copy of it). */
struct plan_change {
	uint64_t seq;
	int64_t bytes;
	uint32_t life;
};

struct life_plan {
	struct plan_change *items;
	size_t count, room;

	/* Of plans_run: */
	uint64_t peak, peak_seq;
	int64_t now; /* bytes more than recorded */
	size_t next;
};

/* So many more bytes are there from the event `from` on, until that of `until`. */
void plan_with(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until, uint64_t bytes);
/* So many bytes are gone then. */
void plan_without(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until,
		  uint64_t bytes);
/* Bytes less after that event; below 0: more. */
int64_t plan_less(const struct life_plan *p, uint64_t seq);
void plan_add(struct life_plan *p, struct plan_change change);
void plan_free(struct life_plan *p);

/* Scans the timeline's lives once for all plans. Peaks are looked for from the event `since` to
 * before `until`, and not in the steps `leave`. */
void plans_run(struct life_plan **plans, size_t count, struct timeline *t,
	       const struct repeats *leave, uint64_t since, uint64_t until);
