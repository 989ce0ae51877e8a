/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts and merges pieces of segments, puts free ones into their sets, and counts reserved bytes. */
#include "../base/arithmetic.h"
#include "allocator_parts.h"

#define PAGE	   0x200000ull
#define PLACES	   (1ull << 63) /* bytes of addresses for all segments */
#define PLACE_MOST (1ull << 40) /* for one segment, as sizes in a damaged file can be anything */

bool allocator_room(const struct allocator *a, uint64_t bytes)
{
	return bytes <= a->limit && a->reserved <= a->limit - bytes;
}

void allocator_reserve(struct allocator *a, uint64_t bytes)
{
	a->reserved += bytes;
	if (a->reserved > a->peak_reserved)
		a->peak_reserved = a->reserved;
}

void allocator_release(struct allocator *a, uint64_t bytes)
{
	a->reserved -= bytes;
}

struct piece *allocator_new_piece(struct allocator *a, struct bin *bin, uint64_t addr,
				  uint64_t size)
{
	struct piece *p = piece_new(&a->store);

	p->bin = bin;
	p->addr = addr;
	p->size = size;
	return p;
}

/* Takes the lowest free addresses that are enough, in whole pages. The order of segments matters,
 * because the allocator prefers the lower of two blocks of one size. */
static struct piece *take_place(struct allocator *a, uint64_t bytes)
{
	uint64_t size = (arithmetic_least(bytes, PLACE_MOST) + PAGE - 1) & ~(PAGE - 1);
	struct bin *all = &a->places;
	struct piece *p, *next;

	if (!all->free.root)
		allocator_put_free(a, allocator_new_piece(a, all, PAGE, PLACES));
	p = pieces_first(&all->free);
	while (p->size < size && (next = pieces_after(&all->free, p)))
		p = next;
	pieces_erase(&all->free, p);
	if (p->size > size)
		allocator_put_free(a, allocator_cut(a, p, size));
	p->taken = true;
	return p;
}

struct piece *allocator_new_segment(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	struct piece *place = take_place(a, bytes);
	struct piece *p = allocator_new_piece(a, bin, place->addr, bytes);

	p->place = place;
	return p;
}

struct piece *allocator_cut(struct allocator *a, struct piece *p, uint64_t bytes)
{
	struct piece *rest = allocator_new_piece(a, p->bin, p->addr + bytes, p->size - bytes);

	rest->place = p->place;
	rest->expandable = p->expandable;
	rest->mapped = p->mapped;
	rest->prev = p;
	rest->next = p->next;
	if (rest->next)
		rest->next->prev = rest;
	p->next = rest;
	p->size = bytes;
	return rest;
}

void allocator_put_free(struct allocator *a, struct piece *p)
{
	p->since = a->searches;
	pieces_insert(p->mapped ? &p->bin->free : &p->bin->unmapped, p);
}

void allocator_merge(struct allocator *a, struct piece *p, struct piece *neighbour)
{
	if (!neighbour || neighbour->taken || neighbour->mapped != p->mapped)
		return;
	pieces_erase(p->mapped ? &p->bin->free : &p->bin->unmapped, neighbour);
	if (neighbour == p->prev) {
		p->addr = neighbour->addr;
		p->prev = neighbour->prev;
		if (p->prev)
			p->prev->next = p;
	} else {
		p->next = neighbour->next;
		if (p->next)
			p->next->prev = p;
	}
	p->size += neighbour->size;
	piece_give(&a->store, neighbour);
}

void allocator_join(struct allocator *a, struct piece *p)
{
	p->taken = false;
	allocator_merge(a, p, p->prev);
	allocator_merge(a, p, p->next);
	allocator_put_free(a, p);
}
