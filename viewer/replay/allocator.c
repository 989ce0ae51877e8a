/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of blocks: the best fit among cached pieces, else a new segment, else after releasing
 * cached memory. */
#include "allocator_parts.h"

void allocator_init(struct allocator *a, const struct alloc_settings *s)
{
	*a = (struct allocator){ .settings = *s,
				 .limit = UINT64_MAX,
				 .allowed = UINT64_MAX,
				 .device = 1ull << 40,
				 .whole_pools = true,
				 .places.free.by_address = true,
				 .next_place = 1ull << 56 };
}

void allocator_free(struct allocator *a)
{
	for (size_t i = 0; i < a->bin_count; i++)
		free(a->bins[i]);
	free(a->bins);
	map_free(&a->over);
	free(a->used);
	pieces_free(&a->store);
	memset(a, 0, sizeof(*a));
}

static struct bin *find_bin(struct allocator *a, uint64_t stream, uint32_t pool, bool small)
{
	struct bin *b;

	for (size_t i = 0; i < a->bin_count; i++) {
		b = a->bins[i];
		if (b->stream == stream && b->pool == pool && b->small == small)
			return b;
	}
	b = *need_item(a->bins, a->bin_count, a->bin_room) = need_new(sizeof(*b));
	*b = (struct bin){
		.stream = stream, .pool = pool, .small = small, .unmapped.by_address = true
	};
	return b;
}

static uint64_t can_grow_to(const struct piece *p)
{
	return p->size + (p->next && !p->next->mapped ? p->next->size : 0);
}

/* The best fit. An expandable segment's free end counts with the size to which it can grow. */
static struct piece *fitting(struct bin *bin, uint64_t bytes)
{
	struct piece *p = pieces_from(&bin->free, bytes, 0), *next;

	if (!p || !p->expandable)
		return p;
	for (next = pieces_after(&bin->free, p);
	     next && p->expandable && can_grow_to(next) < can_grow_to(p);
	     next = pieces_after(&bin->free, p))
		p = next;
	return p;
}

static struct piece *usable(const struct allocator *a, struct bin *bin, uint64_t bytes)
{
	const struct alloc_settings *s = &a->settings;
	struct piece *p = fitting(bin, bytes);

	if (!p)
		return NULL;
	if (bytes < s->max_split && p->size >= s->max_split)
		return NULL;
	if (bytes >= s->max_split && p->size >= bytes + s->rounding)
		return NULL;
	return p;
}

static struct piece *find_free(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	struct piece *p = usable(a, bin, bytes);

	if (!bin->small && !bin->pool)
		a->searches++;
	if (p)
		pieces_erase(&bin->free, p);
	return p;
}

static struct piece *new_segment(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	uint64_t segment = settings_segment(&a->settings, bytes);

	if (a->reserved + segment > a->allowed)
		return NULL;
	if (a->settings.expandable && (!bin->pool || a->whole_pools))
		return expandable_take(a, bin, bytes);
	if (!allocator_room(a, segment))
		return NULL;
	allocator_reserve(a, segment);
	return allocator_new_segment(a, bin, segment);
}

void allocator_give(struct allocator *a, struct piece *p)
{
	a->allocated -= p->size;
	allocator_join(a, p);
}

void allocator_give_used(struct allocator *a, struct piece **p)
{
	a->allocated -= (*p)->size;
	*need_item(a->used, a->used_count, a->used_room) = p;
}

static void ready(struct allocator *a, size_t i)
{
	struct piece **p = a->used[i];

	memmove(a->used + i, a->used + i + 1, (--a->used_count - i) * sizeof(*a->used));
	a->waited -= i < a->waited;
	allocator_join(a, *p);
	*p = NULL;
}

void allocator_ready(struct allocator *a, struct piece **p)
{
	for (size_t i = 0; *p && i < a->used_count; i++)
		if (a->used[i] == p)
			ready(a, i);
}

static void all_ready(struct allocator *a)
{
	while (a->waited)
		ready(a, 0);
}

/* Before the cache is emptied PyTorch waits for the streams. */
static void release(struct allocator *a)
{
	a->waited = a->used_count;
	all_ready(a);
	release_all(a);
}

static struct piece *find_more(struct allocator *a, struct bin *bin, uint64_t bytes)
{
	struct piece *p;

	if (a->allowed != UINT64_MAX && a->settings.threshold > 0)
		release_old(a);
	p = new_segment(a, bin, bytes);
	if (!p && release_some(a, bin, bytes))
		p = new_segment(a, bin, bytes);
	if (p || bin->pool) /* during a capture nothing is released */
		return p;
	release(a);
	a->retries++;
	return new_segment(a, bin, bytes);
}

static bool splits(const struct allocator *a, const struct piece *p, uint64_t bytes)
{
	uint64_t rest = p->size - bytes;

	if (p->bin->small || a->settings.expandable)
		return rest >= 512;
	return bytes < a->settings.max_split && rest > SMALL_MOST;
}

static struct piece *taken(struct allocator *a, struct piece *p)
{
	p->taken = true;
	a->allocated += p->size;
	if (a->allocated > a->peak_allocated)
		a->peak_allocated = a->allocated;
	return p;
}

struct piece *allocator_take(struct allocator *a, uint64_t asked, uint64_t stream, uint32_t pool)
{
	uint64_t bytes = settings_round(&a->settings, asked);
	struct bin *bin = find_bin(a, stream, pool, bytes <= SMALL_MOST);
	struct piece *p;

	all_ready(a);
	p = pieces_below(&bin->free, bytes, 0);
	a->below = p ? p->size : 0;
	p = find_free(a, bin, bytes);
	if (!p)
		p = find_more(a, bin, bytes);
	if (!p) {
		a->ooms++;
		return NULL;
	}
	a->cut = splits(a, p, bytes);
	if (a->cut)
		allocator_put_free(a, allocator_cut(a, p, bytes));
	return taken(a, p);
}

bool allocator_has(struct allocator *a, uint64_t asked, uint64_t stream, uint32_t pool)
{
	uint64_t bytes = settings_round(&a->settings, asked);

	return usable(a, find_bin(a, stream, pool, bytes <= SMALL_MOST), bytes);
}

struct piece *allocator_there(struct allocator *a, uint64_t bytes, uint64_t stream)
{
	struct bin *bin = find_bin(a, stream, 0, bytes <= 2 * SMALL_MOST);
	struct piece *p = allocator_new_segment(a, bin, bytes);

	allocator_reserve(a, bytes);
	allocator_put_free(a, p);
	return p;
}

struct piece *allocator_take_at(struct allocator *a, struct piece *p, uint64_t addr, uint64_t bytes)
{
	while (p && p->addr + p->size <= addr)
		p = p->next;
	if (!p || p->taken || addr < p->addr || addr + bytes > p->addr + p->size)
		return NULL;
	pieces_erase(&p->bin->free, p);
	if (addr > p->addr) {
		struct piece *rest = allocator_cut(a, p, addr - p->addr);

		allocator_put_free(a, p);
		p = rest;
	}
	if (bytes < p->size)
		allocator_put_free(a, allocator_cut(a, p, bytes));
	return taken(a, p);
}

void allocator_empty(struct allocator *a)
{
	release(a);
}

/* Waits only for other streams' work on this pool's blocks. */
void allocator_empty_pool(struct allocator *a, uint32_t pool)
{
	for (size_t i = a->used_count; i-- > 0;)
		if ((*a->used[i])->bin->pool == pool)
			ready(a, i);
	release_pool(a, pool);
}

void allocator_pool_over(struct allocator *a, uint32_t pool)
{
	map_put(&a->over, pool, NULL);
}
