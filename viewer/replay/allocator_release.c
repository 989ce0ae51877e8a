/* SPDX-License-Identifier: Apache-2.0 */
/* Releases segments without a block in them to the device, all or some of them. */
#include "allocator_parts.h"

static bool is_whole(const struct piece *p)
{
	return !p->prev && !p->next;
}

/* cudaFree waits for all work of the device. */
static void release_segment(struct allocator *a, struct piece *p)
{
	a->waited = a->used_count;
	pieces_erase(&p->bin->free, p);
	allocator_release(a, p->size);
	allocator_join(a, p->place);
	piece_give(&a->store, p);
}

static bool may_release(const struct allocator *a, const struct bin *bin)
{
	return !bin->pool || map_get(&a->over, bin->pool);
}

static void release_bin(struct allocator *a, struct bin *bin)
{
	struct piece *p = pieces_first(&bin->free);
	uint64_t size, addr;

	while (p) {
		size = p->size;
		addr = p->addr;
		if (p->expandable)
			expandable_unmap(a, p);
		else if (is_whole(p))
			release_segment(a, p);
		p = pieces_from(&bin->free, size, addr + 1);
	}
}

static bool gives_back(const struct allocator *a, const struct bin *bin)
{
	for (struct piece *p = pieces_first(&bin->free); p; p = pieces_after(&bin->free, p))
		if (p->expandable ? expandable_pages(a, p) > 0 : is_whole(p))
			return true;
	return false;
}

bool allocator_would_release(const struct allocator *a)
{
	return ANY_OF(x, a->bins, a->bin_count, may_release(a, *x) && gives_back(a, *x));
}

void release_all(struct allocator *a)
{
	for (size_t i = 0; i < a->bin_count; i++)
		if (may_release(a, a->bins[i]))
			release_bin(a, a->bins[i]);
}

void release_pool(struct allocator *a, uint32_t pool)
{
	for (size_t i = 0; i < a->bin_count; i++)
		if (a->bins[i]->pool == pool)
			release_bin(a, a->bins[i]);
}

static bool release_largest(struct allocator *a, struct bin *bin, uint64_t wanted)
{
	struct piece *p = pieces_below(&bin->free, wanted, 0), *before;
	uint64_t released = 0;

	for (; p && released < wanted && p->size >= a->settings.max_split; p = before) {
		before = pieces_below(&bin->free, p->size, p->addr);
		if (p->expandable || !is_whole(p))
			continue;
		released += p->size;
		release_segment(a, p);
	}
	return released >= wanted;
}

/* Releases cached blocks that are too large to be split: one that is large enough, or several. */
bool release_some(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	uint64_t wanted = bytes;
	struct piece *p;

	if (a->settings.max_split == UINT64_MAX)
		return false;
	if (wanted < a->settings.max_split)
		wanted = a->settings.max_split;
	p = pieces_from(&bin->free, wanted, 0);
	if (!p || p->expandable || !is_whole(p))
		return release_largest(a, bin, wanted);
	release_segment(a, p);
	return true;
}

struct age {
	uint64_t sum, count;
};

static void each_old(struct allocator *a, const struct age *than, struct age *age, uint64_t *gained)
{
	struct bin *bin;
	struct piece *p, *next;

	for (size_t i = 0; i < a->bin_count; i++) {
		bin = a->bins[i];
		if (bin->small || bin->pool)
			continue;
		for (p = pieces_first(&bin->free); p; p = next) {
			uint64_t old = a->searches - p->since;

			next = pieces_after(&bin->free, p);
			if (!is_whole(p))
				continue;
			if (!than) {
				age->sum += old;
				age->count++;
			} else if (!p->expandable && old * than->count >= than->sum) {
				age->sum -= old;
				age->count--;
				*gained += p->size;
				release_segment(a, p);
			}
		}
	}
}

/* Above the threshold, releases cached segments older than the mean age until enough is free. */
void release_old(struct allocator *a)
{
	uint64_t threshold = (uint64_t)(a->settings.threshold * (double)a->allowed);
	uint64_t gained = 0, before, wanted;
	struct age age = { 0 }, mean;

	if (a->reserved <= threshold)
		return;
	wanted = a->reserved - threshold;
	each_old(a, NULL, &age, &gained);
	while (gained < wanted && age.count) {
		before = gained;
		mean = age;
		each_old(a, &mean, &age, &gained);
		if (gained == before)
			return;
	}
}
