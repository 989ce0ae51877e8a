/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same accounting as in viewer/model/model_cuda.c, in sums only: physical memory exists as long
 * as a handle or a mapping refers to it, and a context frees its own memory when it ends. Events
 * can be slightly out of order (a free after the next allocation at its address), so an event never
 * affects rows that are newer than it.
 */
#include "device_memory.h"

#include "../../format/mem_traits.h"
#include "../base/os.h"

#include <string.h>

#define LEAST 1024u /* rows */

/* Addresses and handles are keys of one table. */
enum space { SPACE_FREE, SPACE_MEMORY, SPACE_PHYSICAL, SPACE_MAPPED };

struct memory_row {
	uint64_t addr; /* in an unused row: 1 + the index of the next one */
	uint64_t size, seq;
	uint64_t of; /* context; for a mapping the handle */
	uint32_t refs;
	int16_t device; /* the device that it counts for; -1 = none */
	uint8_t space, mem;
	bool block;
};

static uint64_t key_of(enum space space, uint64_t addr)
{
	return addr << 2 | space;
}

static struct memory_row *find_row(const struct device_memory *m, enum space space, uint64_t addr)
{
	const uint64_t *at = table_get(&m->rows, key_of(space, addr));

	return at ? &m->items[*at] : NULL;
}

static bool make_room(struct device_memory *m)
{
	uint64_t room = m->room ? m->room * 2 : LEAST;
	struct memory_row *items = os_map(room * sizeof(*items));

	if (!items)
		return false;
	if (m->count)
		memcpy(items, m->items, m->count * sizeof(*items));
	os_unmap(m->items, m->room * sizeof(*items));
	m->items = items;
	m->room = room;
	return true;
}

static struct memory_row *take_row(struct device_memory *m)
{
	uint64_t i = m->unused - 1;

	if (m->unused) {
		m->unused = m->items[i].addr;
		return &m->items[i];
	}
	if (m->count == m->room && !make_room(m))
		return NULL;
	return &m->items[m->count++];
}

static void count(struct device_memory *m, const struct memory_row *r, bool comes)
{
	uint64_t by = comes ? r->size : -r->size;

	if (r->device < 0)
		return;
	m->driver[r->device] += by;
	if (r->block)
		m->blocks[r->device] += by;
}

static void drop(struct device_memory *m, struct memory_row *r)
{
	uint64_t *at = table_get(&m->rows, key_of(r->space, r->addr));

	count(m, r, false);
	if (at)
		table_remove(&m->rows, at);
	*r = (struct memory_row){ .addr = m->unused };
	m->unused = 1 + (uint64_t)(r - m->items);
}

/* Adds a row in place of an old one at that address. NULL: out of memory. */
static struct memory_row *add_row(struct device_memory *m, enum space space,
				  const struct gmt_event *e)
{
	struct memory_row *r = find_row(m, space, e->addr);
	uint64_t *at;

	if (r)
		drop(m, r);
	r = take_row(m);
	at = r ? table_put(&m->rows, key_of(space, e->addr)) : NULL;
	if (r && !at) {
		*r = (struct memory_row){ .addr = m->unused };
		m->unused = 1 + (uint64_t)(r - m->items);
	}
	if (!at)
		return NULL;
	*at = (uint64_t)(r - m->items);
	*r = (struct memory_row){ .addr = e->addr,
				  .size = e->size,
				  .seq = e->seq,
				  .device = -1,
				  .space = (uint8_t)space };
	return r;
}

static bool rises(struct device_memory *m, struct memory_row *r, uint64_t mem, int32_t device)
{
	r->mem = (uint8_t)mem;
	if (!gmt_mem_is_on_device(mem) || device < 0 || device >= (int32_t)MEMORY_DEVICES)
		return false;
	r->device = (int16_t)device;
	count(m, r, true);
	return true;
}

static bool allocate(struct device_memory *m, const struct gmt_event *e)
{
	const uint64_t *current = table_get(&m->contexts, 1ull + e->thread);
	struct memory_row *r = add_row(m, SPACE_MEMORY, e);

	if (!r)
		return false;
	r->of = gmt_mem_context(e->arg0, current ? *current : 0);
	r->block = gmt_is_framework_block(e);
	m->framework |= r->block;
	return rises(m, r, e->arg0, e->device);
}

static bool create_physical(struct device_memory *m, const struct gmt_event *e)
{
	struct memory_row *r = add_row(m, SPACE_PHYSICAL, e);

	if (!r)
		return false;
	r->refs = 1;
	return rises(m, r, GMT_MEM_PHYSICAL, e->device);
}

static void drop_reference(struct device_memory *m, uint64_t handle, uint64_t seq)
{
	struct memory_row *r = find_row(m, SPACE_PHYSICAL, handle);

	if (r && r->seq < seq && --r->refs == 0)
		drop(m, r);
}

static bool retain(struct device_memory *m, const struct gmt_event *e)
{
	struct memory_row *r = find_row(m, SPACE_PHYSICAL, e->addr);

	r = r ? r : add_row(m, SPACE_PHYSICAL, e); /* imported: it counts for no device */
	if (r)
		r->refs++;
	return false;
}

static void unmap_one(struct device_memory *m, struct memory_row *mapping, uint64_t seq)
{
	uint64_t handle = mapping->of;

	drop(m, mapping);
	drop_reference(m, handle, seq);
}

static bool map(struct device_memory *m, const struct gmt_event *e)
{
	struct memory_row *r = find_row(m, SPACE_MAPPED, e->addr), *physical;

	if (r)
		unmap_one(m, r, e->seq);
	r = add_row(m, SPACE_MAPPED, e);
	physical = r ? find_row(m, SPACE_PHYSICAL, e->arg0) : NULL;
	if (r)
		r->of = e->arg0;
	if (physical)
		physical->refs++;
	return false;
}

/* Removes adjacent mappings in turn. If one is missing, searches all rows for the rest. */
static bool unmap(struct device_memory *m, const struct gmt_event *e)
{
	uint64_t at = e->addr, end = e->addr + e->size;
	struct memory_row *r;

	while (at < end && (r = find_row(m, SPACE_MAPPED, at)) && r->size && r->seq < e->seq) {
		at += r->size;
		unmap_one(m, r, e->seq);
	}
	for (uint64_t i = 0; at < end && i < m->count; i++) {
		r = &m->items[i];
		if (r->space == SPACE_MAPPED && r->addr >= at && r->addr < end && r->seq < e->seq)
			unmap_one(m, r, e->seq);
	}
	return false;
}

static bool is_ended(const struct memory_row *r, const struct gmt_event *e)
{
	return r->device >= 0 && !r->block && r->seq < e->seq &&
	       gmt_mem_ends(e, r->mem, r->device, r->of);
}

static bool end_context(struct device_memory *m, const struct gmt_event *e)
{
	for (uint64_t i = 0; i < m->count; i++) {
		struct memory_row *r = &m->items[i], *physical;

		physical = r->space == SPACE_MAPPED ? find_row(m, SPACE_PHYSICAL, r->of) : NULL;
		if (physical && is_ended(physical, e))
			unmap_one(m, r, e->seq);
	}
	for (uint64_t i = 0; i < m->count; i++)
		if (m->items[i].space != SPACE_FREE && is_ended(&m->items[i], e))
			drop(m, &m->items[i]);
	return false;
}

static bool release(struct device_memory *m, const struct gmt_event *e)
{
	drop_reference(m, e->addr, e->seq);
	return false;
}

static bool free_one(struct device_memory *m, const struct gmt_event *e)
{
	struct memory_row *r = find_row(m, SPACE_MEMORY, e->addr);

	if (r && r->seq < e->seq)
		drop(m, r);
	return false;
}

static bool set_context(struct device_memory *m, const struct gmt_event *e)
{
	uint64_t *at = table_put(&m->contexts, 1ull + e->thread);

	if (at)
		*at = e->addr;
	return false;
}

static bool (*const follow[])(struct device_memory *, const struct gmt_event *) = {
	[GMT_MEM_ALLOC] = allocate,
	[GMT_MEM_FREE] = free_one,
	[GMT_PHYS_CREATE] = create_physical,
	[GMT_PHYS_RETAIN] = retain,
	[GMT_PHYS_RELEASE] = release,
	[GMT_MAP] = map,
	[GMT_UNMAP] = unmap,
	[GMT_CTX_CURRENT] = set_context,
	[GMT_CTX_DESTROY] = end_context,
};

bool memory_follow(struct device_memory *m, const struct gmt_event *e)
{
	bool known = e->kind < sizeof(follow) / sizeof(follow[0]) && follow[e->kind];

	return known && follow[e->kind](m, e);
}

uint64_t memory_total(const struct device_memory *m, unsigned device)
{
	return m->framework ? m->blocks[device] : m->driver[device];
}

void memory_free(struct device_memory *m)
{
	table_free(&m->rows);
	table_free(&m->contexts);
	os_unmap(m->items, m->room * sizeof(*m->items));
	*m = (struct device_memory){ 0 };
}
