/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks alive at one moment, with the class of each block and the sum of each class. */
#pragma once

#include "../classes/classify.h"
#include "timeline.h"

struct snapshot {
	struct model *model;  /* of the whole recording */
	struct moment moment; /* its blocks know their category */
	uint64_t bytes[CATEGORIES], blocks[CATEGORIES];
};

/* After the event `seq`, on the timeline's device. */
void snapshot_take(struct snapshot *s, struct timeline *t, uint64_t seq);
/* Fills the classes and sums where the model and the moment are there already. */
void snapshot_sort(struct snapshot *s, struct timeline *t);

/* Forward passes since that event that hold blocks of these classes (a set of bits), those left out
 * that hold next to nothing of them, a loss say. */
size_t snapshot_passes(const struct snapshot *s, uint64_t since, uint32_t classes);
/* Bytes of the class of that name ("optimizer_state"); 0 if there is no such class. */
uint64_t snapshot_bytes(const struct snapshot *s, const char *category);

/* The most that each class held, and when: often not at the run's peak. */

/* The peaks alone, of each class on the timeline's device: peak_seq is the event after which it was
 * so, 0 = never any; stack and node are those of the block that came with it, 0 where a class
 * changed. One scan over the tables. */
void highest_find(struct extent all[CATEGORIES], struct timeline *t);
