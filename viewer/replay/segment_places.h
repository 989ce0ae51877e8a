/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of segments: the lowest hole that is large enough, in pages of 2 MiB. The allocator
 * prefers the lower of two blocks of one size, so it matters which segment lies below the other.
 */
#ifndef VIEWER_REPLAY_PLACES_H
#define VIEWER_REPLAY_PLACES_H

#include <stddef.h>
#include <stdint.h>

struct places {
	struct hole {
		uint64_t addr, size;
	} * holes; /* by address, none beside another */
	size_t count, room;
	uint64_t end; /* beyond it all is free */
};

uint64_t places_take(struct places *p, uint64_t bytes);
void places_give(struct places *p, uint64_t addr, uint64_t bytes);
void places_free(struct places *p);

#endif
