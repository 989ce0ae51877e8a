/* SPDX-License-Identifier: Apache-2.0 */
/* The most that each class held, and when: often not at the run's peak. */
#pragma once

#include "timeline.h"

struct highest {
	uint64_t bytes, seq, time_ns; /* seq: of the event after which it was so, 0 = never any */
	uint32_t stack, node;	      /* of the block that came with it; 0 where a class changed */
};

/* Of each class, on the timeline's device; one scan over the tables. */
void highest_find(struct highest all[CATEGORIES], struct timeline *t);
/* That moment in words. */
void highest_instant(struct instant *out, const struct highest *h, struct timeline *t);
