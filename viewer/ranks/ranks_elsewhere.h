/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a rank, or its context alone, on the device on which another rank of its host works. */
#ifndef VIEWER_RANKS_ELSEWHERE_H
#define VIEWER_RANKS_ELSEWHERE_H

#include "ranks_table.h"

struct ranks_elsewhere {
	size_t row, of; /* rows of the memory's rank, and of the rank that works there */
	const struct ranks_device *device;
};

/* The first one behind `last`; false: there is no other. Start with a row of 0 and no device. */
bool ranks_elsewhere_next(const struct ranks_table *t, struct ranks_elsewhere *last);
/* Bytes of a context, about; 0 = not known. */
uint64_t ranks_elsewhere_context(const struct ranks_table *t);
/* The most that each rank had reserved on that device, with their contexts, added up. */
uint64_t ranks_elsewhere_sum(const struct ranks_table *t, const struct ranks_elsewhere *e);

#endif
