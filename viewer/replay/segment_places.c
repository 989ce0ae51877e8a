/* SPDX-License-Identifier: Apache-2.0 */
#include "segment_places.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

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
