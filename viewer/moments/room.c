/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

/* Gaps between the blocks inside [start, end); *at walks along the blocks. */
static uint64_t hole_in(const struct moment *mo, uint64_t start, uint64_t end, size_t *at)
{
	uint64_t free_from = start, largest = 0;

	while (*at < mo->count && mo->blocks[*at].addr < end) {
		const struct block *b = &mo->blocks[(*at)++];

		if (b->addr + b->size <= start)
			continue;
		if (b->addr > free_from && b->addr - free_from > largest)
			largest = b->addr - free_from;
		if (b->addr + b->size > free_from)
			free_from = b->addr + b->size;
	}
	if (end > free_from && end - free_from > largest)
		largest = end - free_from;
	return largest;
}

static bool is_segment_of_cache(const struct block *b, int device)
{
	return b->flags & GMT_FLAG_FRAMEWORK && b->device == device &&
	       (b->memory == GMT_MEM_DEVICE || b->memory == GMT_MEM_PITCHED);
}

/* Mappings that touch are one piece. */
static uint64_t largest_hole(const struct moment *mo)
{
	uint64_t largest = 0, hole;
	size_t at = 0;

	for (size_t i = 0; i < mo->memory_count; i++)
		if (is_segment_of_cache(&mo->memory[i], mo->device)) {
			hole = hole_in(mo, mo->memory[i].addr,
				       mo->memory[i].addr + mo->memory[i].size, &at);
			largest = hole > largest ? hole : largest;
		}
	at = 0;
	for (size_t i = 0; i < mo->mapped_count; i++) {
		uint64_t start = mo->mapped[i].addr, end = start + mo->mapped[i].size;

		while (i + 1 < mo->mapped_count && mo->mapped[i + 1].addr == end)
			end += mo->mapped[++i].size;
		hole = hole_in(mo, start, end, &at);
		largest = hole > largest ? hole : largest;
	}
	return largest;
}

struct room room_at(const struct moment *mo)
{
	struct room r = { .total = mo->total_bytes,
			  .free = mo->free_bytes, /* an imported snapshot tells no total */
			  .reserved = mo->framework && mo->reserved ? mo->reserved : mo->bytes };
	uint64_t taken = mo->driver + mo->context;

	r.sampled = r.total || r.free;
	if (r.total)
		r.free = r.total > taken ? r.total - taken : 0;
	r.cached = r.reserved > mo->bytes ? r.reserved - mo->bytes : 0;
	r.hole = r.cached ? largest_hole(mo) : 0;
	return r;
}
