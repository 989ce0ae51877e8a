/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "../../format/record.h"

#include "model_parts.h"

/*
 * Totals for events that a bounded recording left out. All of these blocks were freed again, so
 * none is alive afterwards. Their highest sum counts for the peaks of the run and of its steps.
 */

static void touch(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	uint64_t was = c->now;

	if (bytes <= was)
		return;
	model_set(m, c, bytes, e);
	c->now = was;
}

static void model_thinned(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	m->events += e->size ? e->size - 1 : 0;
	m->left_out += e->size;
	if (!d)
		return;
	touch(m, d->framework ? &d->blocks : &d->driver, e->arg0, e);
	if (d->framework)
		touch(m, &d->reserved, e->arg1, e);
	*(d->framework ? &d->block_allocs : &d->driver_allocs) += e->stream;
	*(d->framework ? &d->block_frees : &d->driver_frees) += e->stream;
}

/* Events that change no life, but are shown. */

static bool model_is_mark(uint16_t kind)
{
	return kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END || kind == GMT_MARK ||
	       kind == GMT_BLOCK_OOM || kind == GMT_MEM_FAIL || kind == GMT_CTX_DESTROY;
}

static void dropped(struct model *m, const struct gmt_event *e)
{
	m->dropped += e->arg0;
}

static void note_read(struct model *m, const struct gmt_event *e)
{
	reads_note(&m->reads, e);
}

static void note_last_event(struct model *m, UNUSED const struct gmt_event *e)
{
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
	[GMT_CTX_CREATE] = model_ctx_create,
	[GMT_CTX_CURRENT] = model_ctx_current,
	[GMT_CTX_DESTROY] = model_ctx_destroy,
	[GMT_MEMINFO] = model_meminfo,
	[GMT_TAG_LEAF] = model_tag_leaf,
	[GMT_TAG_MOVED] = model_tag_moved,
	[GMT_TAG_SAVED] = model_tag_saved,
	[GMT_TAG_RELEASED] = model_tag_released,
	[GMT_TAG_GRAD] = model_tag_grad,
	[GMT_TAG_HELD] = model_tag_held,
	[GMT_RANGE_BEGIN] = model_range_begin,
	[GMT_VALUE] = note_read,
	[GMT_THINNED] = model_thinned,
	[GMT_DROPPED] = dropped,
	[GMT_END] = note_last_event,
	[GMT_VA_RELEASE] = model_va_release,
	[GMT_GRAPH_BEGIN] = model_graph,
	[GMT_GRAPH_END] = model_graph,
	[GMT_SEGMENT_POOL] = model_segment_pool,
	[GMT_REUSE_WAIT] = model_reuse,
	[GMT_REUSE_READY] = model_reuse,
};

void model_init(struct model *m, const struct defs *defs)
{
	*m = (struct model){ .defs = defs };
	m->devices = need_new(MODEL_DEVICES * sizeof(*m->devices));
	for (int d = 0; d < MODEL_DEVICES; d++)
		m->devices[d].live.each = sizeof(struct history);
	m->memory.each = m->physical.each = m->mapped.each = m->away.each = sizeof(struct history);
	signs_init(&m->signs, defs);
	spans_init(&m->spans, defs, &m->signs);
	lives_init(&m->lives);
	uses_init(&m->uses, m->lives.pool);
}

/* Adds a row of levels if the event changed the device's reserved, context, free or total bytes. */
static void note_level(struct model *m, const struct gmt_event *e, int device)
{
	const struct model_device *d = &m->devices[device];
	const struct device_level *last = &m->lives.levels.last[device];

	if (d->reserved.now == last->reserved && d->context == last->context &&
	    d->free_bytes == last->free_bytes && d->total_bytes == last->total_bytes)
		return;
	levels_add(&m->lives.levels,
		   &(struct device_level){ e->seq, e->time_ns, d->reserved.now, d->context,
					   d->free_bytes, d->total_bytes, device });
}

/* All devices are compared after an event of CUDA, because it might not name its device. */
static void note_levels(struct model *m, const struct gmt_event *e, enum gmt_layer layer)
{
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
	if (now->is_work && stage_is_backward(now->stage) && !m->tags)
		m->grads_live = true;
	if (now->backward_over && m->watch)
		m->watch->backward_over(m->watcher, e);
}

int model_event(void *model, const struct gmt_event *e)
{
	const enum gmt_layer layer = gmt_kind_layer(e->kind);
	struct model *m = model;

	chunks_rest(m->lives.pool);
	if (!m->events++) {
		m->first_ns = e->time_ns;
		m->first_seq = e->seq;
		m->state_seq = strtoull(defs_meta(m->defs, "state_events").s, NULL, 10);
		m->spans.state_seq = m->state_seq;
		m->spans.bare = defs_meta(m->defs, "stacks_of").len;
	}
	if (e->time_ns > m->last_ns)
		m->last_ns = e->time_ns;
	m->last_seq = e->seq;
	m->end_ns = e->time_ns;
	if (layer == GMT_LAYER_USE) {
		model_use(m, e);
		return 0;
	}
	note_spans(m, e);
	if (e->kind < sizeof(handlers) / sizeof(handlers[0]) && handlers[e->kind])
		handlers[e->kind](m, e);
	if (m->bucket_count)
		model_look_at_buckets(m, e);
	note_levels(m, e, layer);
	if (model_is_mark(e->kind))
		model_note_mark(m, e);
	return 0;
}

void model_move(struct model *to, struct model *from)
{
	*to = *from;
	to->home = NULL;
	from->devices = NULL;
	if (to->watch)
		to->watch->moved(to->watcher, to);
}

void model_free(struct model *m)
{
	if (m->home) {
		model_move(m->home, m);
		return;
	}
	if (m->watch)
		m->watch->freed(m->watcher);
	for (int d = 0; d < MODEL_DEVICES; d++) {
		tree_free(&m->devices[d].live);
		pools_free(&m->devices[d].pools);
		free(m->devices[d].captures);
	}
	free(m->devices);
	tree_free(&m->memory);
	tree_free(&m->physical);
	tree_free(&m->mapped);
	tree_free(&m->away);
	uses_free(&m->uses);
	lives_free(&m->lives);
	reads_free(&m->reads);
	map_items_free(&m->waits);
	tensors_free(&m->tensors);
	free(m->bucket_list);
	map_free(&m->saved_ids);
	map_items_free(&m->leaves);
	spans_free(&m->spans);
	signs_free(&m->signs);
	free(m->saved);
}
