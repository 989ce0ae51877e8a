/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses (places) that a launch can touch, as USE and GRAPH_USE events carry them. addr is the
 * first. Up to five more are differences to it in units of 256 bytes, 32 bits each: two in size,
 * two in arg0, one in the upper half of arg1; 0 ends them. A block is aligned to 256 bytes at
 * least, so a place rounded down to a unit lies in the same block. Pure.
 */
#pragma once

#include "event.h"

#define GMT_USE_PLACES 6u
#define GMT_USE_UNIT   256u

/* Whether an event whose first place is `first` can also carry `place`. */
static inline bool gmt_use_is_near(uint64_t first, uint64_t place)
{
	int64_t d = (int64_t)(place / GMT_USE_UNIT) - (int64_t)(first / GMT_USE_UNIT);

	return d == (int32_t)d && d != 0;
}

/* Adds place number i, from 1, to an event that has those before it. */
static inline void gmt_use_put(struct gmt_event *e, unsigned i, uint64_t place)
{
	int64_t d = (int64_t)(place / GMT_USE_UNIT) - (int64_t)(e->addr / GMT_USE_UNIT);
	uint64_t word = (uint32_t)d;
	uint64_t *const in[GMT_USE_PLACES] = { &e->addr, &e->size, &e->size,
					       &e->arg0, &e->arg0, &e->arg1 };

	*in[i] |= i % 2 ? word << (i == 5 ? 32 : 0) : word << 32;
}

/* Returns how many places the event has, and sets them. 0: its parameters could not be read. */
static inline unsigned gmt_use_places(const struct gmt_event *e, uint64_t places[GMT_USE_PLACES])
{
	const uint64_t words[] = { e->size, e->size >> 32, e->arg0, e->arg0 >> 32, e->arg1 >> 32 };
	uint64_t first = e->addr / GMT_USE_UNIT;
	unsigned n = 0;

	if (!e->addr)
		return 0;
	places[n++] = e->addr;
	for (; n < GMT_USE_PLACES && (uint32_t)words[n - 1]; n++)
		places[n] = (first + (uint64_t)(int64_t)(int32_t)words[n - 1]) * GMT_USE_UNIT;
	return n;
}

/* STRING of the kernel, or of the API function. */
static inline uint32_t gmt_use_by(const struct gmt_event *e)
{
	return (uint32_t)e->arg1;
}
