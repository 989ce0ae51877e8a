/* SPDX-License-Identifier: Apache-2.0
 *
 * A box of bytes that is copied or filled: `depth` slices of `height` rows of `width` bytes.
 */
#pragma once

#include "cudart.h"

struct box {
	void *dst;
	const void *src;
	size_t dpitch, spitch, dslice, sslice;
	size_t width, height, depth;
	uint32_t value;
	unsigned int unit; /* bytes of the fill pattern: 1, 2 or 4; 0: a copy */
};

#define ROW(to, from, bytes)                         \
	(&(struct box){ .dst = (void *)(to),         \
			.src = (const void *)(from), \
			.width = bytes,              \
			.height = 1,                 \
			.depth = 1 })

int box_copy(const struct box *b, void *stream, bool async);
int box_fill(const struct box *b, void *stream);
uint64_t box_time(const struct box *b);
/* The action of a graph's node for a box, and the box of such an action; NULL for other actions. */
struct act *box_act(const struct box *b);
const struct box *box_of(const struct act *act);
