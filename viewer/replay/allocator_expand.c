/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expandable segments. Each stream, pool and kind of block has a stretch of addresses larger than
 * the device, into which memory is mapped page by page as needed.
 */
#include "../base/arithmetic.h"
#include "allocator_parts.h"

static uint64_t page_of(const struct allocator *a, const struct bin *bin)
{
	return bin->small ? 2 * MIB : a->settings.large_segment;
}

static bool is_free(const struct piece *p)
{
	return p && !p->taken;
}

static bool reaches(const struct piece *p, uint64_t bytes)
{
	uint64_t sum = 0;

	for (; sum < bytes && is_free(p); p = p->next)
		sum += p->size;
	return sum >= bytes;
}

static struct piece *new_stretch(struct allocator *a, struct bin *bin)
{
	uint64_t page = page_of(a, bin),
		 size = (a->device + a->device / 8 + page - 1) / page * page;
	struct piece *p;

	a->next_place = (a->next_place + page - 1) / page * page; /* so that its pages are whole */
	p = allocator_new_piece(a, bin, a->next_place, size);
	a->next_place += size;
	p->expandable = true;
	p->mapped = false;
	allocator_put_free(a, p);
	return p;
}

/* The first of adjacent free pieces, mapped or not, that have that many bytes together. */
static struct piece *find_stretch(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	struct piece *p = pieces_first(&bin->unmapped), *first;

	for (; p; p = pieces_after(&bin->unmapped, p)) {
		first = is_free(p->prev) ? p->prev : p;
		if (reaches(first, bytes))
			return first;
	}
	return new_stretch(a, bin);
}

/* Maps that many bytes of an unmapped piece, in whole pages, and merges the piece with its
 * neighbours. */
static bool map(struct allocator *a, struct piece *p, uint64_t bytes)
{
	uint64_t page = page_of(a, p->bin), size = (bytes + page - 1) / page * page;

	if (!allocator_room(a, size))
		return false;
	allocator_reserve(a, size);
	pieces_erase(&p->bin->unmapped, p);
	if (size < p->size)
		allocator_put_free(a, allocator_cut(a, p, size));
	p->mapped = true;
	allocator_merge(a, p, p->prev);
	allocator_merge(a, p, p->next);
	allocator_put_free(a, p);
	return true;
}

struct piece *expandable_take(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	struct piece *p = find_stretch(a, bin, bytes), *next;

	if (!p->mapped && !map(a, p, arithmetic_least(p->size, bytes)))
		return NULL;
	while (p->size < bytes) {
		next = p->next;
		if (!next || !map(a, next, arithmetic_least(bytes - p->size, next->size)))
			return NULL;
		p = next;
	}
	pieces_erase(&bin->free, p);
	return p;
}

/* Bytes before the first whole page of the piece. */
static uint64_t before_pages(uint64_t page, const struct piece *p)
{
	return (page - p->addr % page) % page;
}

uint64_t expandable_pages(const struct allocator *a, const struct piece *p)
{
	uint64_t page = page_of(a, p->bin), before = before_pages(page, p);

	return before < p->size ? (p->size - before) / page * page : 0;
}

/* Unmaps the whole pages of a free piece; the rest stays free. */
void expandable_unmap(struct allocator *a, struct piece *p)
{
	uint64_t before = before_pages(page_of(a, p->bin), p), size = expandable_pages(a, p);

	if (!size)
		return;
	pieces_erase(&p->bin->free, p);
	if (before) {
		struct piece *rest = allocator_cut(a, p, before);

		allocator_put_free(a, p);
		p = rest;
	}
	if (size < p->size)
		allocator_put_free(a, allocator_cut(a, p, size));
	allocator_release(a, size);
	p->mapped = false;
	allocator_merge(a, p, p->prev);
	allocator_merge(a, p, p->next);
	allocator_put_free(a, p);
	if (p->prev || p->next)
		return;
	pieces_erase(&p->bin->unmapped, p);
	piece_give(&a->store, p);
}
