/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans addresses as offline planners do: the largest block first, each in the smallest gap that it
 * fits into among blocks alive at the same time. Of very many blocks only the largest are planned;
 * the others are placed above them by time, in the best fit then.
 */
#include "replay.h"

#include <sys/mman.h>

#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "allocator_parts.h"

#define PLANNED 16384 /* most blocks that are planned, because the work is quadratic */

struct item {
	uint64_t size, at;
	uint32_t born, died;
};

static struct item item_of(const struct requests *r, uint32_t i)
{
	const struct request_life *life = requests_life(r, i);

	return (struct item){ .size = requests_asked(r, i),
			      .born = life->born,
			      .died = life->died ? life->died : UINT32_MAX };
}

static uint64_t live_peak(const struct requests *r)
{
	uint64_t now = 0, peak = 0;

	for (uint32_t i = 0; i < r->list.count; i++) {
		const struct request *q = requests_at(r, i);

		if (q->kind == REQUEST_TAKE)
			now += requests_asked(r, q->value);
		else if (q->kind == REQUEST_GIVE)
			now -= requests_asked(r, q->value);
		peak = arithmetic_most(peak, now);
	}
	return peak;
}

COMPARE(larger_first, struct item, ORDER(y->size, x->size) ?: ORDER(x->born, y->born))

/* Finds the place of an item in `placed`, which is ordered by address; returns its index. */
static size_t find_gap(const struct item *placed, size_t count, struct item *it)
{
	uint64_t end = 0, best = UINT64_MAX;

	it->at = UINT64_MAX;
	FOR_EACH (const struct item, other, placed, count) {
		if (other->died <= it->born || other->born >= it->died)
			continue;
		if (other->at > end && other->at - end >= it->size && other->at - end < best) {
			best = other->at - end;
			it->at = end;
		}
		end = arithmetic_most(end, other->at + other->size);
	}
	if (it->at == UINT64_MAX)
		it->at = end;
	for (end = count; end && placed[end - 1].at > it->at;)
		end--;
	return end;
}

/* *least: the smallest size that is planned, for about PLANNED blocks at most; 0 = all. */
static uint64_t plan(const struct requests *r, uint64_t *least)
{
	struct item *items = NULL, *placed;
	size_t count = 0, room = 0, place;
	uint64_t top = 0;

	for (uint32_t i = 0; i < r->lives.count; i++)
		if (requests_at(r, requests_life(r, i)->born)->kind == REQUEST_TAKE)
			*need_item(items, count, room) = item_of(r, i);
	SORT(items, count, larger_first);
	*least = count > PLANNED ? items[PLANNED].size + 1 : 0;
	while (*least && count && items[count - 1].size < *least)
		count--;
	placed = need_new((count + 1) * sizeof(*placed));
	for (size_t i = 0; i < count; i++) {
		place = find_gap(placed, i, &items[i]);
		memmove(placed + place + 1, placed + place, (i - place) * sizeof(*placed));
		placed[place] = items[i];
		top = arithmetic_most(top, items[i].at + items[i].size);
	}
	free(placed);
	free(items);
	return top;
}

/* An allocator's pieces in one row of unlimited length. */
struct row {
	struct allocator allocator;
	struct bin bin;
	uint64_t top;
};

static struct piece *row_take(struct row *w, uint64_t size)
{
	struct piece *p = pieces_from(&w->bin.free, size, 0);

	pieces_erase(&w->bin.free, p);
	if (p->size > size)
		allocator_put_free(&w->allocator, allocator_cut(&w->allocator, p, size));
	p->taken = true;
	w->top = arithmetic_most(w->top, p->addr + size);
	return p;
}

/* Peak of the blocks below that size, placed one after the other as they come. */
static uint64_t follow(const struct requests *r, uint64_t below)
{
	size_t bytes = (r->lives.count + 1) * sizeof(struct piece *);
	struct piece **held = need_pages(bytes);
	struct row w = { 0 };

	allocator_put_free(&w.allocator, allocator_new_piece(&w.allocator, &w.bin, 0, 1ull << 60));
	for (uint32_t i = 0; i < r->list.count; i++) {
		const struct request *q = requests_at(r, i);
		uint64_t size;

		if (i % 65536 == 0)
			say_progress("packing", i, r->list.count);
		if (q->kind != REQUEST_TAKE && q->kind != REQUEST_GIVE)
			continue;
		size = requests_asked(r, q->value);
		if (size >= below)
			continue;
		if (q->kind == REQUEST_TAKE)
			held[q->value] = row_take(&w, size);
		else
			allocator_join(&w.allocator, held[q->value]);
	}
	allocator_free(&w.allocator);
	munmap(held, bytes);
	return w.top;
}

void packing_make(struct packing *p, const struct requests *r)
{
	uint64_t least;

	p->lower_bound = live_peak(r);
	p->packed = plan(r, &least);
	p->packed += least ? follow(r, least) : 0;
	p->packed = arithmetic_least(p->packed, follow(r, UINT64_MAX));
}
