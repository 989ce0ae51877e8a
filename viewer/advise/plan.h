/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curve of a device with other lives: some bytes removed for a while, others added. The curve
 * is computed anew at every event, so the peak found is the true peak of that run, wherever it
 * has moved.
 */
#pragma once

#include "../moments/timeline.h"

#define PLAN_END  UINT64_MAX /* after the last event */
#define PLAN_NONE UINT32_MAX /* not a life of the recording */

/* From the event seq on, so many bytes of a life (or of a copy of it) are added or, if negative,
 * removed. */
struct plan_change {
	uint64_t seq;
	int64_t bytes;
	uint32_t life;
};

struct life_plan {
	struct plan_change *items;
	size_t count, room;

	/* For plans_run: */
	uint64_t peak, peak_seq;
	int64_t now; /* bytes above the recorded curve */
	size_t next;
};

/* Adds bytes from the event `from` until the event `until`. */
void plan_with(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until, uint64_t bytes);
/* Removes bytes in that range. */
void plan_without(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until,
		  uint64_t bytes);
/* Bytes removed after that event; negative = added. */
int64_t plan_less(const struct life_plan *p, uint64_t seq);
void plan_add(struct life_plan *p, struct plan_change change);
/* The most bytes that it adds at once. Sorts the changes. */
uint64_t plan_most(struct life_plan *p);
void plan_free(struct life_plan *p);

/* Scans the lives once for all plans and fills their peaks: from the event `since` to before
 * `until`, without the steps of `leave`. */
void plans_run(struct life_plan **plans, size_t count, struct timeline *t,
	       const struct repeats *leave, uint64_t since, uint64_t until);
