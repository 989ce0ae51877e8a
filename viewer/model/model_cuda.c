/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory from CUDA calls: device memory (the framework's segments and all other), pinned host
 * memory, physical memory and its mappings. Physical memory is free when neither a handle nor a
 * mapping refers to it.
 */
#include "model_parts.h"
#include "../../format/mem_traits.h"

bool model_is_segment(uint64_t memory, unsigned flags)
{
	return (memory == GMT_MEM_DEVICE || memory == GMT_MEM_PITCHED) &&
	       flags & GMT_FLAG_FRAMEWORK;
}

static void note_release(struct model_device *d, unsigned flags)
{
	if (flags & GMT_FLAG_FRAMEWORK && d->retry == RETRY_FAILED)
		d->retry = RETRY_FREED;
}

/* While most is asleep: notes the event after which the driver's bytes are fewest. */
static void note_asleep(struct model_device *d, const struct gmt_event *e, uint64_t least)
{
	if (!d->asleep || d->asleep < d->asleep_most || d->driver.now > least)
		return;
	d->asleep_seq = e->seq;
	d->asleep_least = d->driver.now;
}

/* Ends a block: lowers its curves, and removes it from the tree. */
static void forget(struct model *m, struct tree *t, struct history *b, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, b->block.device);

	if (gmt_mem_is_on_host(b->block.memory))
		model_fall(&m->host, b->block.size);
	else if (d && gmt_mem_is_on_device(b->block.memory)) {
		model_fall(&d->driver, b->block.size);
		d->driver_frees++;
		note_asleep(d, e, d->driver.now); /* pages are freed one by one */
		if (model_is_segment(b->block.memory, b->block.flags))
			model_fall(&d->reserved, b->block.size);
		note_release(d, b->block.flags);
		model_drop_segment(d, b);
	}
	model_note_death(m, b, e);
	tree_remove(t, b->block.addr);
}

static void alloc_framework_block(struct model *m, struct model_device *d,
				  const struct gmt_event *e)
{
	struct history *old = live_find(&d->live, e->addr);
	struct history *b;

	if (old) {
		model_fall(&d->blocks, old->block.size);
		model_fall(&d->driver, old->block.size);
		model_note_death(m, old, e);
	}
	b = model_birth(m, &d->live, e);
	b->block.memory = GMT_MEM_ASYNC;
	b->block.name = 0;
	d->framework = true;
	d->block_allocs++;
	d->driver_allocs++;
	model_rise(m, &d->blocks, e->size, e);
	model_rise(m, &d->driver, e->size, e);
	model_row_born(m, b, LIFE_BLOCK);
}

void model_mem_alloc(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	struct history *old = live_find(&m->memory, e->addr), *b;

	if (d && gmt_is_framework_block(e)) {
		alloc_framework_block(m, d, e);
		return;
	}
	if (old)
		forget(m, &m->memory, old, e);
	b = model_birth(m, &m->memory, e);
	b->block.memory = e->arg0;
	model_row_born(m, b, LIFE_MEMORY);
	if (gmt_mem_is_on_host(e->arg0))
		model_rise(m, &m->host, e->size, e);
	if (!d || !gmt_mem_is_on_device(e->arg0))
		return;
	d->driver_allocs++;
	model_rise(m, &d->driver, e->size, e);
	if (!model_is_segment(e->arg0, e->flags))
		return;
	model_rise(m, &d->reserved, e->size, e);
	model_expect_block(d, b);
}

static bool free_framework_block(struct model *m, const struct gmt_event *e)
{
	FOR_EACH (struct model_device, d, m->devices, MODEL_DEVICES) {
		struct history *b = d->live.count ? live_find(&d->live, e->addr) : NULL;

		if (!b || b->block.memory != GMT_MEM_ASYNC)
			continue;
		model_fall(&d->blocks, b->block.size);
		model_fall(&d->driver, b->block.size);
		d->block_frees++;
		d->driver_frees++;
		model_note_death(m, b, e);
		tree_remove(&d->live, e->addr);
		return true;
	}
	return false;
}

void model_mem_free(struct model *m, const struct gmt_event *e)
{
	struct history *b = live_find(&m->memory, e->addr);

	if (b)
		forget(m, &m->memory, b, e);
	else if (!free_framework_block(m, e))
		m->unknown_frees++;
}

void model_mem_fail(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	if (!d || !gmt_mem_is_on_device(e->arg0))
		return;
	d->driver_fails++;
	if (!(e->flags & GMT_FLAG_FRAMEWORK)) {
		d->other_fails++;
		d->other_asked = e->size;
	}
	if (!d->self_reported)
		d->oom_asked = e->size;
	if (e->flags & GMT_FLAG_FRAMEWORK)
		d->retry = RETRY_FAILED;
}

void model_meminfo(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	if (!d)
		return;
	d->free_bytes = e->arg0;
	d->total_bytes = e->arg1;
	note_asleep(d, e, d->asleep_least);
	d->context = e->arg1 > e->arg0 + d->driver.now ? e->arg1 - e->arg0 - d->driver.now : 0;
}

void model_phys_create(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	struct history *old = live_find(&m->physical, e->addr), *b;

	if (old)
		forget(m, &m->physical, old, e);
	b = model_birth(m, &m->physical, e);
	b->block.memory = GMT_MEM_PHYSICAL;
	b->refs = 1;
	model_row_born(m, b, LIFE_PHYSICAL);
	if (!d)
		return;
	d->driver_allocs++;
	model_rise(m, &d->driver, e->size, e);
}

void model_phys_retain(struct model *m, const struct gmt_event *e)
{
	struct history *b = live_find(&m->physical, e->addr);

	if (!b) {
		b = model_birth(m, &m->physical, e);
		b->block.memory = GMT_MEM_IMPORTED;
		b->block.device = -1;
		model_row_born(m, b, LIFE_PHYSICAL);
	}
	b->refs++;
}

static void drop_reference(struct model *m, uint64_t handle, const struct gmt_event *e)
{
	struct history *b = live_find(&m->physical, handle);

	if (!b)
		m->unknown_frees++;
	else if (b->refs > 1)
		b->refs--;
	else
		forget(m, &m->physical, b, e);
}

void model_phys_release(struct model *m, const struct gmt_event *e)
{
	drop_reference(m, e->addr, e);
}

static void unmap_one(struct model *m, struct history *mapping, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, mapping->block.device);
	uint64_t handle = mapping->block.handle;

	if (d && mapping->block.flags & GMT_FLAG_FRAMEWORK) {
		model_fall(&d->reserved, mapping->block.size);
		model_drop_segment(d, mapping);
		note_release(d, mapping->block.flags);
		model_unmapped(m, d, mapping, e);
	}
	model_row_died(m, mapping, e);
	tree_remove(&m->mapped, mapping->block.addr);
	drop_reference(m, handle, e);
}

void model_map(struct model *m, const struct gmt_event *e)
{
	struct history *physical = live_find(&m->physical, e->arg0), *b;
	struct history *old = live_find(&m->mapped, e->addr);
	struct model_device *d;
	bool again;

	if (old)
		unmap_one(m, old, e);
	b = model_birth(m, &m->mapped, e);
	b->block.handle = e->arg0;
	b->block.device = physical ? physical->block.device : -1;
	b->block.flags |= physical ? physical->block.flags & GMT_FLAG_FRAMEWORK : 0;
	again = model_mapped_again(m, b, e);
	model_row_born(m, b, LIFE_MAPPED);
	if (!physical)
		return;
	physical->refs++;
	d = model_device(m, b->block.device);
	if (!d || !(b->block.flags & GMT_FLAG_FRAMEWORK))
		return;
	model_rise(m, &d->reserved, b->block.size, e);
	if (!again)
		model_expect_block(d, b);
}

void model_unmap(struct model *m, const struct gmt_event *e)
{
	struct history *b = live_from(&m->mapped, e->addr);

	if (!b || b->block.addr - e->addr >= e->size)
		m->unknown_frees++;
	while (b && b->block.addr - e->addr < e->size) {
		unmap_one(m, b, e);
		b = live_from(&m->mapped, e->addr);
	}
}

void model_ctx_create(struct model *m, const struct gmt_event *e)
{
	if (e->device < 0 || e->device >= MODEL_DEVICES || m->contexts[e->device].seq)
		return;
	m->contexts[e->device] = (struct model_context){ e->seq, e->stack };
}

void model_ctx_current(struct model *m, const struct gmt_event *e)
{
	m->spans.now.thread->context = e->addr;
}

/* Ends all memory of the context except the framework's blocks, which the framework reports. */
void model_ctx_destroy(struct model *m, const struct gmt_event *e)
{
	struct tree *trees[] = { &m->mapped, &m->physical, &m->memory };
	struct history *b;

	for (int t = 0; t < 3; t++) {
		uint64_t from = 0;

		while ((b = live_from(trees[t], from)) && from != UINT64_MAX) {
			from = b->block.addr == UINT64_MAX ? UINT64_MAX : b->block.addr + 1;
			if (!gmt_mem_ends(e, b->block.memory, b->block.device, b->context))
				continue;
			if (t == 0)
				unmap_one(m, b, e);
			else
				forget(m, trees[t], b, e);
		}
	}
}
