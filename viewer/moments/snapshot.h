/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks alive at one moment, with the class of each block and the sum of each class. */
#pragma once

#include "../classes/classify.h"
#include "timeline.h"

struct snapshot {
	struct model *model;  /* of the whole recording */
	struct moment moment; /* its blocks have their category */
	uint64_t bytes[CATEGORIES], blocks[CATEGORIES];
};

/* Takes the state after event `seq` on the timeline's device. */
void snapshot_take(struct snapshot *s, struct timeline *t, uint64_t seq);
/* Fills in classes and sums of a snapshot that has its model and moment. */
void snapshot_sort(struct snapshot *s, struct timeline *t);

/* The number of forward passes since that event that hold blocks of these classes (a set of bits).
 * A pass with less than an eighth of the largest one's bytes (a loss, say) does not count. */
size_t snapshot_passes(const struct snapshot *s, uint64_t since, uint32_t classes);
/* Bytes of the class of that name ("optimizer_state"); 0 if there is no such class. */
uint64_t snapshot_bytes(const struct snapshot *s, const char *category);

/* The peak of each class on the timeline's device, often not at the run's peak. peak_seq: its
 * event, 0 = the class is empty; stack and node: of the block allocated in it, 0 if a block changed
 * its class. One scan over the tables. */
void highest_find(struct extent all[CATEGORIES], struct timeline *t);
