/* SPDX-License-Identifier: Apache-2.0
 *
 * First-fit allocation of numbered slots: pages of a device, pieces of a page, pages of reserved
 * addresses. Each slot has a bit for "taken" and a bit for "a block begins here". The owner locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_NONE ((size_t)-1)

struct slots {
	uint64_t *taken, *begins;
	uint64_t *bytes;      /* by first slot: bytes of the block */
	uint32_t *count;      /* by first slot: slots of the block */
	size_t n, free, hint; /* no free slot lies below hint */
	size_t mapped;	      /* bytes of the arrays */
};

bool slots_init(struct slots *s, size_t n);
void slots_done(struct slots *s);
/* The first run of `count` free slots whose number is a multiple of `align`, or SLOTS_NONE. */
size_t slots_take(struct slots *s, size_t count, size_t align, uint64_t bytes);
/* Takes exactly these slots; false if one is taken. */
bool slots_take_at(struct slots *s, size_t at, size_t count, uint64_t bytes);
/* Frees the block that begins at a slot; returns its number of slots, or 0 if none begins there. */
size_t slots_give(struct slots *s, size_t at);
/* The first slot of the block that contains a slot, or SLOTS_NONE. */
size_t slots_find(const struct slots *s, size_t at);
