/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of segments are cut, merged and put among the free ones; what is reserved is counted. */
#include "allocator_parts.h"

#define PAGE 0x200000ull

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static void drop(struct places *p, size_t i)
{
	memmove(p->holes + i, p->holes + i + 1, (--p->count - i) * sizeof(*p->holes));
}

uint64_t places_take(struct places *p, uint64_t bytes)
{
	uint64_t size = pages(bytes), addr;

	for (size_t i = 0; i < p->count; i++) {
		if (p->holes[i].size < size)
			continue;
		addr = p->holes[i].addr;
		p->holes[i].addr += size;
		p->holes[i].size -= size;
		if (!p->holes[i].size)
			drop(p, i);
		return addr;
	}
	if (!p->end)
		p->end = PAGE;
	addr = p->end;
	p->end += size;
	return addr;
}

void places_give(struct places *p, uint64_t addr, uint64_t bytes)
{
	uint64_t size = pages(bytes);
	size_t i = p->count;

	while (i && p->holes[i - 1].addr > addr)
		i--;
	p->holes = need_grow(p->holes, &p->room, p->count, sizeof(*p->holes));
	memmove(p->holes + i + 1, p->holes + i, (p->count++ - i) * sizeof(*p->holes));
	p->holes[i] = (struct hole){ addr, size };
	if (i + 1 < p->count && addr + size == p->holes[i + 1].addr) {
		p->holes[i].size += p->holes[i + 1].size;
		drop(p, i + 1);
	}
	if (i && p->holes[i - 1].addr + p->holes[i - 1].size == addr) {
		p->holes[i - 1].size += p->holes[i].size;
		drop(p, i--);
	}
	if (p->holes[i].addr + p->holes[i].size == p->end) {
		p->end = p->holes[i].addr;
		p->count--;
	}
}

void places_free(struct places *p)
{
	free(p->holes);
	*p = (struct places){ 0 };
}

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

struct piece *allocator_cut(struct allocator *a, struct piece *p, uint64_t bytes)
{
	struct piece *rest = allocator_new_piece(a, p->bin, p->addr + bytes, p->size - bytes);

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
