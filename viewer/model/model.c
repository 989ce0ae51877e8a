/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "model_parts.h"

static void dropped(struct model *m, const struct gmt_event *e)
{
	m->dropped += e->arg0;
}

static void value(struct model *m, const struct gmt_event *e)
{
	reads_note(&m->reads, e);
}

static void ended(struct model *m, const struct gmt_event *e)
{
	(void)e;
	m->ended = true;
}

static model_handler *const handlers[] = {
	[GMT_BLOCK_ALLOC] = model_block_alloc,
	[GMT_BLOCK_FREE] = model_block_free,
	[GMT_BLOCK_OOM] = model_block_oom,
	[GMT_MEM_ALLOC] = model_mem_alloc,
	[GMT_MEM_FREE] = model_mem_free,
	[GMT_MEM_FAIL] = model_mem_fail,
	[GMT_PHYS_CREATE] = model_phys_create,
	[GMT_PHYS_RELEASE] = model_phys_release,
	[GMT_PHYS_RETAIN] = model_phys_retain,
	[GMT_MAP] = model_map,
	[GMT_UNMAP] = model_unmap,
	[GMT_CTX_DESTROY] = model_ctx_destroy,
	[GMT_MEMINFO] = model_meminfo,
	[GMT_TAG_LEAF] = model_tag_leaf,
	[GMT_TAG_MOVED] = model_tag_moved,
	[GMT_TAG_SAVED] = model_tag_saved,
	[GMT_TAG_RELEASED] = model_tag_released,
	[GMT_TAG_GRAD] = model_tag_grad,
	[GMT_TAG_HELD] = model_tag_held,
	[GMT_RANGE_BEGIN] = model_range_begin,
	[GMT_VALUE] = value,
	[GMT_THINNED] = model_thinned,
	[GMT_DROPPED] = dropped,
	[GMT_END] = ended,
};

void model_init(struct model *m, const struct defs *defs)
{
	*m = (struct model){ .defs = defs };
	m->devices = need_new(MODEL_DEVICES * sizeof(*m->devices));
	for (int d = 0; d < MODEL_DEVICES; d++)
		m->devices[d].live.each = sizeof(struct history);
	m->memory.each = m->physical.each = m->mapped.each = sizeof(struct history);
	signs_init(&m->signs, defs);
	spans_init(&m->spans, defs, &m->signs);
	lives_init(&m->lives);
}

/* What the cache and the device are, where the event changed it. */
static void note_level(struct model *m, const struct gmt_event *e, int device)
{
	const struct model_device *d = &m->devices[device];
	struct device_level *last = &m->devices[device].level;

	if (d->reserved.now == last->reserved && d->context == last->context &&
	    d->free_bytes == last->free_bytes && d->total_bytes == last->total_bytes)
		return;
	*last = (struct device_level){ e->seq,	      e->time_ns,     d->reserved.now, d->context,
				       d->free_bytes, d->total_bytes, device };
	lives_add_level(&m->lives, last);
}

/* Calls of CUDA need not say on which device they work. */
static void note_levels(struct model *m, const struct gmt_event *e)
{
	enum gmt_layer layer = gmt_kind_layer(e->kind);

	if (layer == GMT_LAYER_FRAMEWORK && e->device >= 0 && e->device < m->device_end)
		note_level(m, e, e->device);
	else if (layer == GMT_LAYER_CUDA || layer == GMT_LAYER_SAMPLE)
		for (int d = 0; d < m->device_end; d++)
			note_level(m, e, d);
}

static void note_spans(struct model *m, const struct gmt_event *e)
{
	const struct span_now *now = &m->spans.now;

	spans_event(&m->spans, e);
	m->grads_live |= now->is_work && stage_is_backward(now->stage) && !m->tags;
	if (now->backward_over && m->watch)
		m->watch->backward_over(m->watcher, e);
}

int model_event(void *model, const struct gmt_event *e)
{
	struct model *m = model;

	if (!m->events++) {
		m->first_ns = e->time_ns;
		m->first_seq = e->seq;
		m->state_seq = strtoull(defs_meta(m->defs, "state_events").s, NULL, 10);
		m->spans.state_seq = m->state_seq;
	}
	if (e->time_ns > m->last_ns)
		m->last_ns = e->time_ns;
	m->last_seq = e->seq;
	m->end_ns = e->time_ns;
	note_spans(m, e);
	if (e->kind < sizeof(handlers) / sizeof(handlers[0]) && handlers[e->kind])
		handlers[e->kind](m, e);
	if (m->bucket_count)
		model_look_at_buckets(m, e);
	note_levels(m, e);
	if (model_is_mark(e->kind))
		model_note_mark(m, e);
	return 0;
}

void model_free(struct model *m)
{
	if (m->watch)
		m->watch->freed(m->watcher);
	for (int d = 0; d < MODEL_DEVICES; d++)
		tree_free(&m->devices[d].live);
	free(m->devices);
	tree_free(&m->memory);
	tree_free(&m->physical);
	tree_free(&m->mapped);
	lives_free(&m->lives);
	reads_free(&m->reads);
	tensors_free(&m->tensors);
	free(m->bucket_list);
	map_free(&m->saved_ids);
	map_free(&m->leaf_ids);
	free(m->leaves);
	spans_free(&m->spans);
	signs_free(&m->signs);
	free(m->saved);
}

struct model_device *model_device(struct model *m, int device)
{
	struct model_device *d;

	if (device < 0 || device >= MODEL_DEVICES)
		return NULL;
	d = &m->devices[device];
	if (d->seen)
		return d;
	d->seen = true;
	d->blocks.level = spans_add_level(&m->spans, &d->blocks.now);
	d->driver.level = spans_add_level(&m->spans, &d->driver.now);
	if (device >= m->device_end)
		m->device_end = device + 1;
	return d;
}

/* A block in place of whatever the recording says was still at that address. */
struct history *model_birth(struct model *m, struct tree *t, const struct gmt_event *e)
{
	struct history *b = live_insert(t, e->addr);

	b->block.size = e->size;
	b->block.seq = e->seq;
	b->block.born_ns = e->time_ns;
	b->block.stream = e->stream;
	b->step = m->spans.now.thread->step;
	b->block.stack = e->stack;
	b->block.thread = e->thread;
	b->block.name = e->name;
	b->in_node = e->scope;
	b->block.device = e->device;
	b->block.flags = e->flags;
	if (e->kind == GMT_MEM_ALLOC && !model_is_framework_block(e))
		b->block.memory = e->arg0;
	b->stage = m->spans.now.stage;
	b->signs = m->spans.now.signs;
	if (m->spans.asked && b->stage == STAGE_BACKWARD)
		b->signs |= STACK_ASKED;
	b->born_forward = m->spans.forwards;
	b->after_forward = m->spans.forwards > m->spans.forwards_before;
	b->after_step = m->spans.stepped;
	b->born_backward = m->spans.backwards;
	b->born_steps = (uint32_t)m->spans.steps;
	if (m->watch)
		m->watch->born(m->watcher, b);
	return b;
}

static void note_peak(struct model *m, struct curve *c, const struct gmt_event *e)
{
	const struct span_thread *t = m->spans.now.thread;

	c->peak = (struct peak){ .bytes = c->now,
				 .event = *e,
				 .steps = m->spans.steps,
				 .in_step = t->step != 0,
				 .range = spans_range(t) };
}

void model_set(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	c->now = bytes;
	if (c->now > c->peak.bytes)
		note_peak(m, c, e);
	if (c->level)
		spans_rise(c->level, e);
}

void model_rise(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	model_set(m, c, c->now + bytes, e);
}

void model_fall(struct curve *c, uint64_t bytes)
{
	c->now -= bytes < c->now ? bytes : c->now;
}

const struct curve *model_curve(const struct model_device *d)
{
	return d->framework ? &d->blocks : &d->driver;
}

uint64_t model_peak_reserved(const struct model_device *d)
{
	return d->reserved.peak.bytes ? d->reserved.peak.bytes : model_curve(d)->peak.bytes;
}

uint64_t model_allocs(const struct model_device *d)
{
	return d->framework ? d->block_allocs : d->driver_allocs;
}

uint64_t model_frees(const struct model_device *d)
{
	return d->framework ? d->block_frees : d->driver_frees;
}

uint64_t model_ooms(const struct model_device *d)
{
	return d->self_reported ? d->block_ooms : d->driver_fails;
}

bool model_has_memory(const struct model_device *d)
{
	return d->seen && (model_curve(d)->peak.bytes || model_ooms(d));
}

int model_main_device(const struct model *m)
{
	int best = -1;

	for (int d = 0; d < MODEL_DEVICES; d++)
		if (m->devices[d].seen &&
		    (best < 0 || model_curve(&m->devices[d])->peak.bytes >
					 model_curve(&m->devices[best])->peak.bytes))
			best = d;
	return best;
}

void model_measure_spans(struct model *m, int device)
{
	spans_measure(&m->spans, model_curve(&m->devices[device])->level);
}
