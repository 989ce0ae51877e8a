/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

#define TO_A_PAGE 32 /* functions, about */
#define LOOK_BACK 8  /* functions that a nested one may hide behind */

void functions_add(struct functions *f, struct function one)
{
	*need_item(f->items, f->count, f->room) = one;
}

static size_t page_of(const struct functions *f, uint64_t address)
{
	return (address - f->low) >> f->shift;
}

static void choose_pages(struct functions *f)
{
	uint64_t high = 0;

	f->low = UINT64_MAX;
	for (size_t i = 0; i < f->count; i++) {
		uint64_t start = f->items[i].start;

		f->low = start < f->low ? start : f->low;
		high = start > high ? start : high;
	}
	f->shift = 0;
	while (((high - f->low) >> f->shift) > f->count / TO_A_PAGE)
		f->shift++;
	f->pages = page_of(f, high) + 1;
}

/* A counting sort: how many has each page, where does it begin, then each to its place. */
void functions_deal(struct functions *f)
{
	struct function *dealt;

	if (!f->count)
		return;
	choose_pages(f);
	f->firsts = need_new((f->pages + 2) * sizeof(*f->firsts));
	f->sorted = need_new(f->pages * sizeof(*f->sorted));
	dealt = need_new(f->count * sizeof(*dealt));
	for (size_t i = 0; i < f->count; i++)
		f->firsts[page_of(f, f->items[i].start) + 2]++;
	for (size_t p = 2; p < f->pages + 2; p++)
		f->firsts[p] += f->firsts[p - 1];
	for (size_t i = 0; i < f->count; i++)
		dealt[f->firsts[page_of(f, f->items[i].start) + 1]++] = f->items[i];
	free(f->items);
	f->items = dealt;
}

void functions_free(struct functions *f)
{
	free(f->items);
	free(f->firsts);
	free(f->sorted);
}

/* Of several names at one address the last is taken: those that begin with '_' come first. */
static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort_page(struct functions *f, size_t page)
{
	uint32_t first = f->firsts[page];

	if (!f->sorted[page])
		qsort(f->items + first, f->firsts[page + 1] - first, sizeof(*f->items), by_start);
	f->sorted[page] = true;
}

const char *functions_name(struct functions *f, uint64_t address)
{
	size_t page, at, looked = 0;

	if (!f->pages || address < f->low)
		return NULL;
	page = page_of(f, address);
	page = page < f->pages ? page : f->pages - 1;
	for (;; page--) {
		sort_page(f, page);
		for (at = f->firsts[page + 1]; at > f->firsts[page]; at--) {
			const struct function *one = &f->items[at - 1];

			if (one->start > address)
				continue;
			if (address < one->end || one->start == one->end)
				return one->name;
			if (++looked == LOOK_BACK)
				return NULL;
		}
		if (!page)
			return NULL;
	}
}
