/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory taken by CUDA calls: segments of the framework's cache, and other memory that is
 * therefore not available to it.
 */
#include "../../format/mem_traits.h"
#include "../base/arithmetic.h"
#include "../model/model.h"
#include "replay_requests.h"

/* The list of requests of each device. */

#define MOST_DEVICES 256

struct requests *requests_device(struct requests_all *all, int device)
{
	if (device < 0 || device >= MOST_DEVICES)
		return NULL;
	while (all->count <= (size_t)device) {
		struct requests *r = need_item(all->devices, all->count, all->room);

		*r = (struct requests){ .device = (int)all->count - 1,
					.tells_pools = all->tells_pools };
		rows_init(&r->list, sizeof(struct request), NULL);
		rows_init(&r->lives, sizeof(struct request_life), NULL);
	}
	return &all->devices[device];
}

void requests_add(struct requests *r, enum request_kind kind, uint64_t value)
{
	struct request *row = rows_add(&r->list);

	row->kind = kind;
	row->value = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Marks handles, because they and addresses are keys of one map. */
#define OF_HANDLE (1ull << 63)

uint32_t requests_segment(const struct requests *r, uint64_t addr)
{
	const struct block *b = tree_enclosing(&r->placed, addr);

	return b ? (uint32_t)b->handle + 1 : 0;
}

void requests_segments_pool(struct requests *r, const struct gmt_event *e)
{
	uint32_t pool = pools_number(&r->pools, e->arg0, e->arg1);

	for (const struct block *b = tree_from(&r->placed, e->addr);
	     b && b->addr - e->addr < e->size; b = tree_from(&r->placed, b->addr + 1)) {
		r->segments[b->handle].pool = pool;
		r->segments[b->handle].told = true;
	}
}

static uint32_t add_segment(struct requests *r, const struct gmt_event *e)
{
	struct block *b = tree_insert(&r->placed, e->addr);

	b->size = e->size;
	b->handle = r->segment_count;
	*need_item(r->segments, r->segment_count, r->segment_room) =
		(struct request_segment){ .addr = e->addr, .bytes = e->size, .stream = UINT16_MAX };
	return (uint32_t)r->segment_count;
}

static void drop_segment(struct requests *r, uint32_t number)
{
	const struct block *b = tree_find(&r->placed, r->segments[number].addr);

	if (b && b->handle == number)
		tree_remove(&r->placed, b->addr);
	requests_add(r, REQUEST_RELEASED, number);
}

/* A release without a failed allocation before it: the program emptied the cache, or dropped its
 * own pool. */
static void given_back(struct requests *r, const struct memory_row *row)
{
	bool own = row->segment && r->segments[row->segment - 1].own;

	if (row->counts)
		r->driver = arithmetic_beyond(r->driver, row->bytes);
	if (!row->framework)
		return;
	r->segments_now = arithmetic_beyond(r->segments_now, row->bytes);
	if (row->segment)
		drop_segment(r, row->segment - 1);
	r->retried |= r->failed;
	if (!r->failed && !own)
		r->emptied = true;
}

static void end(struct requests_all *all, struct memory_row *row)
{
	struct requests *r = requests_device(all, row->device);

	if (r)
		given_back(r, row);
	/* The row stays, because the next call that returns this address uses it again. */
	*row = (struct memory_row){ .device = -1 };
}

static void release(struct requests_all *all, uint64_t key)
{
	struct memory_row *row = map_find(&all->memory, key);

	if (row && (!row->refs || !--row->refs))
		end(all, row);
}

static void end_context(struct requests_all *all, const struct gmt_event *e)
{
	for (size_t i = 0; i < all->memory.count; i++)
		if (all->memory.items[i].refs &&
		    gmt_mem_ends(e, GMT_MEM_DEVICE, all->memory.items[i].device, 0))
			end(all, &all->memory.items[i]);
}

static void taken(struct requests_all *all, const struct gmt_event *e, uint64_t key)
{
	struct requests *r = requests_device(all, e->device);
	struct memory_row row = { .bytes = e->size,
				  .device = e->device,
				  .refs = 1,
				  .framework = e->flags & GMT_FLAG_FRAMEWORK,
				  .counts = gmt_mem_is_on_device(e->arg0) };

	if (!r)
		return;
	release(all, key);
	if (row.counts)
		r->driver += e->size;
	if (row.framework && row.counts) {
		r->segments_now += e->size;
		if (e->kind == GMT_MEM_ALLOC)
			row.segment = add_segment(r, e);
		if (row.segment && e->seq <= all->state_seq)
			requests_add(r, REQUEST_THERE, row.segment - 1);
		if (e->kind == GMT_PHYS_CREATE)
			r->expandable = true;
	}
	*map_item(&all->memory, key) = row;
}

static void retain(struct requests_all *all, uint64_t key)
{
	struct memory_row *row = map_find(&all->memory, key);

	if (row && row->refs)
		row->refs++;
}

/* A mapping retains its physical memory. */
static void map_memory(struct requests_all *all, const struct gmt_event *e)
{
	retain(all, e->arg0 | OF_HANDLE);
	*map_item(&all->memory, e->addr) =
		(struct memory_row){ .bytes = e->arg0, .device = -2, .refs = 1 };
}

static void unmap_memory(struct requests_all *all, const struct gmt_event *e)
{
	struct memory_row *row = map_find(&all->memory, e->addr);

	if (!row || row->device != -2)
		return;
	release(all, row->bytes | OF_HANDLE);
	row->device = -1;
}

static void sampled(struct requests *r, const struct gmt_event *e)
{
	if (!e->arg1)
		return;
	r->total = e->arg1;
	r->context = arithmetic_beyond(arithmetic_beyond(e->arg1, e->arg0), r->driver);
}

void requests_limit(struct requests *r)
{
	uint64_t others = r->context + r->driver - r->segments_now;
	uint64_t limit = arithmetic_beyond(r->total, others);

	if (!r->total || limit == r->limit)
		return;
	r->limit = limit;
	requests_add(r, REQUEST_LIMIT, limit / UNIT);
}

void requests_memory(struct requests_all *all, const struct gmt_event *e)
{
	struct requests *r = requests_device(all, e->device);

	if (e->kind == GMT_MEM_ALLOC || e->kind == GMT_PHYS_CREATE)
		taken(all, e, e->kind == GMT_MEM_ALLOC ? e->addr : e->addr | OF_HANDLE);
	else if (e->kind == GMT_MEM_FREE || e->kind == GMT_PHYS_RELEASE)
		release(all, e->kind == GMT_MEM_FREE ? e->addr : e->addr | OF_HANDLE);
	else if (e->kind == GMT_PHYS_RETAIN)
		retain(all, e->addr | OF_HANDLE);
	else if (e->kind == GMT_MAP)
		map_memory(all, e);
	else if (e->kind == GMT_UNMAP)
		unmap_memory(all, e);
	else if (e->kind == GMT_CTX_DESTROY)
		end_context(all, e);
	else if (r && e->kind == GMT_MEM_FAIL)
		r->failed |= e->flags & GMT_FLAG_FRAMEWORK;
	else if (r && e->kind == GMT_MEMINFO)
		sampled(r, e);
}
