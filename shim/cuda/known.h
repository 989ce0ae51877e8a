/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses are memory of a device: a bit for each 2 MiB in which an allocation or a mapping
 * was seen. A bit stays when the memory is freed: readers compare a place with the blocks alive
 * then. Application threads; no lock, no call but for the first mapping.
 */
#pragma once

#include "../../format/event.h"

#define KNOWN_GRANULE_BITS 21
#define KNOWN_ADDRESS_BITS 48
#define KNOWN_WORDS	   (1ull << (KNOWN_ADDRESS_BITS - KNOWN_GRANULE_BITS - 6))

extern uint64_t *known_bits; /* NULL until memory is known */

/* Sets the bits for an event that allocates or maps device memory. Ignores all others. */
void known_learn(const struct gmt_event *e);

static inline bool known_is(uint64_t address)
{
	const uint64_t *bits = __atomic_load_n(&known_bits, __ATOMIC_ACQUIRE);
	uint64_t granule = address >> KNOWN_GRANULE_BITS;

	return granule && !(address >> KNOWN_ADDRESS_BITS) && bits &&
	       __atomic_load_n(&bits[granule / 64], __ATOMIC_RELAXED) >> granule % 64 & 1;
}
