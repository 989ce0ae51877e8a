/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the framework's cache and the whole device were, from which event on: a row for each change,
 * in order of events. A program may change its cache with every block, so a row holds differences.
 */
#ifndef VIEWER_DEVICE_LEVELS_H
#define VIEWER_DEVICE_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "packed.h"

#define LEVEL_DEVICES 256

struct device_level {
	uint64_t seq, ns;
	uint64_t reserved, context, free_bytes, total_bytes;
	int32_t device; /* 0 to LEVEL_DEVICES - 1 */
};

struct levels {
	struct packed rows;
	uint64_t seq, ns;	   /* of the last row, */
	struct device_level *last; /* and of each device */
};

void levels_init(struct levels *l, struct chunk_pool *pool);
void levels_free(struct levels *l);
void levels_add(struct levels *l, const struct device_level *level);

struct levels_cursor {
	const struct levels *levels;
	struct packed_place place;
	uint64_t seq, ns;
	struct device_level devices[LEVEL_DEVICES]; /* the latest of each */
	const struct device_level *now;		    /* NULL: there are no more */
};

void levels_first(struct levels_cursor *c, const struct levels *l);
void levels_next(struct levels_cursor *c);

#endif
