/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the bits of known.h. The table takes 16 MiB of address space; only pages with bits take
 * memory. Application threads, any lock held.
 */
#include "known.h"

#include "../../format/record.h"
#include "../base/os.h"

uint64_t *known_bits;

static uint64_t *table(void)
{
	uint64_t *bits = __atomic_load_n(&known_bits, __ATOMIC_ACQUIRE), *none = NULL;

	if (bits)
		return bits;
	bits = os_map(KNOWN_WORDS * sizeof(*bits));
	if (!bits || __atomic_compare_exchange_n(&known_bits, &none, bits, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
		return bits;
	os_unmap(bits, KNOWN_WORDS * sizeof(*bits));
	return none;
}

static bool is_memory(const struct gmt_event *e)
{
	if (e->kind == GMT_MEM_ALLOC)
		return e->arg0 != GMT_MEM_HOST && e->arg0 != GMT_MEM_REGISTERED &&
		       e->arg0 != GMT_MEM_ARRAY;
	return e->kind == GMT_MAP;
}

void known_learn(const struct gmt_event *e)
{
	uint64_t first = e->addr >> KNOWN_GRANULE_BITS, last, *bits;

	if (!is_memory(e) || !e->addr || !e->size || (e->addr + e->size - 1) >> KNOWN_ADDRESS_BITS)
		return;
	last = (e->addr + e->size - 1) >> KNOWN_GRANULE_BITS;
	bits = table();
	for (uint64_t g = first; bits && g <= last; g++)
		__atomic_fetch_or(&bits[g / 64], 1ull << g % 64, __ATOMIC_RELAXED);
}
