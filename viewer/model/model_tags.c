/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about memory from autograd and from ranges. A tag applies to the whole life of the block
 * that is alive at its address, also to moments before the tag. Saved for backward is the
 * exception: it applies from the tag to the release.
 */
#include "model_parts.h"
#include "../../format/record.h"

/* Live buckets of gradients in order of birth, and which of them hold gradients. */

/* Buckets made after the gradients of others were cleared replace these: DDP makes its buckets anew
 * in the second step, in the order in which gradients arrived, and frees the first ones later. */
void model_add_bucket(struct model *m, struct history *b, enum life_layer layer)
{
	if (m->buckets_filled && !m->grads_live) {
		m->bucket_generation++;
		m->buckets_filled = false;
	}
	*need_item(m->bucket_list, m->bucket_count, m->bucket_room) =
		(struct model_bucket){ b, layer == LIFE_BLOCK, m->bucket_generation };
	m->buckets_changed = true;
}

void model_drop_bucket(struct model *m, const struct history *b)
{
	size_t kept = 0;

	if (!(b->signs & STACK_BUCKET))
		return;
	for (size_t i = 0; i < m->bucket_count; i++)
		if (m->bucket_list[i].block != b)
			m->bucket_list[kept++] = m->bucket_list[i];
	if (kept < m->bucket_count)
		m->buckets_changed = true;
	m->bucket_count = kept;
}

/* The latest generation is filled first, and each generation in order of birth. */
static bool is_filled_before(const struct model_bucket *a, const struct model_bucket *b)
{
	return a->generation != b->generation ? a->generation > b->generation : a < b;
}

static bool is_filled(const struct model *m, const struct model_bucket *b)
{
	uint64_t before = 0;

	FOR_EACH (const struct model_bucket, o, m->bucket_list, m->bucket_count)
		if (o->block->block.device == b->block->block.device &&
		    o->framework == b->framework && is_filled_before(o, b))
			before += o->block->block.size;
	if (!m->tags) /* grad_bytes is not known */
		return m->grads_live && b->generation == m->bucket_generation;
	return m->grads_live && m->grad_bytes > before;
}

/* Decides again which buckets hold gradients, if a fact that matters has changed. */
void model_look_at_buckets(struct model *m, const struct gmt_event *e)
{
	struct bucket_facts now = { m->grads_live, m->tags != 0, m->grad_bytes };

	if (!m->buckets_changed && now.live == m->bucket_facts.live &&
	    now.tags == m->bucket_facts.tags && now.bytes == m->bucket_facts.bytes)
		return;
	m->bucket_facts = now;
	m->buckets_changed = false;
	for (size_t i = 0; i < m->bucket_count; i++) {
		struct history *b = m->bucket_list[i].block;
		bool filled = is_filled(m, &m->bucket_list[i]);

		if (filled != b->holds_gradients)
			model_change(m, b, filled ? CHANGE_FILLED : CHANGE_EMPTIED, e);
		b->holds_gradients = filled;
		m->buckets_filled |= filled;
	}
}

static struct history *enclosing(struct model *m, const struct gmt_event *e)
{
	const struct model_device *d = model_device(m, e->device);
	struct history *b = d ? live_enclosing(&d->live, e->addr) : NULL;

	if (b && e->size && e->size <= b->block.size &&
	    (!b->facts.unused || b->block.size - e->size + 1 < b->facts.unused))
		b->facts.unused = b->block.size - e->size + 1;
	return b;
}

static void note_leaf(struct model *m, struct model_leaf *leaf, const struct gmt_event *e,
		      struct history *b)
{
	uint32_t backward = m->spans.backwards;

	leaf->device = e->device;
	leaf->addr = leaf->seq = 0;
	if (!b)
		return;
	leaf->addr = b->block.addr;
	leaf->seq = b->block.seq;
	b->facts.tags |= leaf->cut ? BLOCK_DETACHED : BLOCK_LEAF;
	if (leaf->cut)
		return;
	if (m->watch)
		m->watch->leaf(m->watcher, (uint32_t)(leaf - m->leaves.items), b);
	if (!b->facts.leaf_ns)
		b->facts.leaf_ns = e->time_ns;
	if (!b->facts.leaf_passes || b->leaf_backward != backward)
		b->facts.leaf_passes++;
	b->leaf_backward = backward;
}

void model_tag_leaf(struct model *m, const struct gmt_event *e)
{
	struct model_leaf *leaf = map_item(&m->leaves, e->arg0);
	struct history *b = enclosing(m, e);

	m->tags++;
	tensors_note(&m->tensors, e, true);
	/* a leaf in backward that a graph has saved: checkpointing cut the graph there */
	*leaf = (struct model_leaf){ .used = e->seq,
				     .cut = b && b->saved && m->spans.now.thread->engine };
	if (m->watch)
		m->watch->leaf(m->watcher, (uint32_t)(leaf - m->leaves.items), NULL);
	note_leaf(m, leaf, e, b);
}

void model_tag_moved(struct model *m, const struct gmt_event *e)
{
	struct model_leaf *leaf = map_item(&m->leaves, e->arg0);
	struct history *b = enclosing(m, e);

	m->tags++;
	if (m->watch && b && b->block.seq != leaf->seq && !leaf->cut)
		m->watch->leaf_moved(m->watcher, (uint32_t)(leaf - m->leaves.items), b);
	note_leaf(m, leaf, e, b);
}

/* With a retained graph a leaf is recorded only once, but each of its gradients is. */
static uint32_t note_arrival(struct model *m, const struct model_leaf *leaf,
			     const struct gmt_event *e)
{
	struct model_device *d = model_device(m, leaf->device);
	struct history *b = d && leaf->seq ? live_find(&d->live, leaf->addr) : NULL;

	if (!b || b->block.seq != leaf->seq || leaf->cut)
		return 0;
	if (!b->facts.arrivals || b->arrived_backward != m->spans.backwards)
		b->facts.arrivals++;
	b->arrived_backward = m->spans.backwards;
	/* A result that was made a leaf: all nodes that had saved it have run. Only those that
	 * checkpointing keeps aside have not, and their release is never recorded. */
	if (b->stage == STAGE_FORWARD && b->saved) {
		b->saved = 0;
		model_change(m, b, CHANGE_RELEASED, e);
	}
	return b->block.life;
}

void model_tag_grad(struct model *m, const struct gmt_event *e)
{
	struct history *b = enclosing(m, e);
	struct model_leaf *leaf = map_find(&m->leaves, e->arg0);
	uint32_t of = leaf ? note_arrival(m, leaf, e) : 0;

	m->tags++;
	if (b && b->block.life)
		*(struct lives_arrival *)rows_add(&m->lives.arrivals) =
			(struct lives_arrival){ e->seq, b->block.life - 1, of };
	if (!b || (leaf && leaf->cut))
		return;
	b->facts.tags |= BLOCK_GRAD;
	if (m->watch)
		m->watch->gradient(m->watcher, b);
	m->grads_live = true;
	if (!(b->signs & STACK_BUCKET) && (!leaf || leaf->counted != m->clearings + 1))
		m->grad_bytes += e->size;
	if (leaf)
		leaf->counted = m->clearings + 1;
	if (!b->facts.grad_ns)
		b->facts.grad_ns = e->time_ns;
}

/* Not from autograd, so it does not count as a tag of the recording. */
void model_tag_held(struct model *m, const struct gmt_event *e)
{
	struct history *b = enclosing(m, e);

	m->held = true;
	if (b && e->arg1 - 1 < GMT_HELD_CACHE)
		b->facts.tags |= (uint16_t)(BLOCK_HELD << (e->arg1 - 1));
}

static void release_saved(struct model *m, const struct model_saved *s, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, s->device);
	struct history *b = d ? live_find(&d->live, s->addr) : NULL;

	if (!b || b->block.seq != s->seq || !b->saved)
		return;
	if (!--b->saved)
		model_change(m, b, CHANGE_RELEASED, e);
}

static uint32_t saved_place(struct model *m)
{
	uint32_t free_one = m->saved_free;

	if (free_one) {
		m->saved_free = (uint32_t)m->saved[free_one - 1].addr;
		return free_one - 1;
	}
	m->saved = need_grow(m->saved, &m->saved_room, m->saved_count, sizeof(*m->saved));
	return m->saved_count++;
}

static void note_saving(struct model *m, struct history *b, const struct gmt_event *e)
{
	b->facts.tags |= e->arg1 & GMT_SAVED_PLAIN ? BLOCK_PLAIN : BLOCK_GRAPH;
	if (e->arg1 & GMT_SAVED_PACKED)
		b->facts.tags |= BLOCK_PACKED;
	if (b->facts.save_ns)
		return;
	model_change(m, b, CHANGE_SAVED_FIRST, e);
	b->facts.save_ns = e->time_ns;
	b->facts.save_backwards = m->spans.backwards - b->born_backward;
	b->facts.save_steps = (uint32_t)m->spans.steps - b->born_steps;
}

/* No node saves the tensor any more, or another tensor has its place. */
static void forget_saved(struct model *m, const struct gmt_event *e, uint32_t place)
{
	release_saved(m, &m->saved[place], e);
	map_remove(&m->saved_ids, e->arg0);
	m->saved[place].addr = m->saved_free;
	m->saved_free = place + 1;
}

/* True if another node saves a tensor that is saved already. False for a new tensor, also in the
 * place of one whose release was not recorded: that one is forgotten. */
static bool is_saved_again(struct model *m, const struct history *b, const struct gmt_event *e)
{
	const uint32_t *at = map_get(&m->saved_ids, e->arg0);
	struct model_saved *s = at ? &m->saved[*at] : NULL;
	bool same = s && b && s->addr == b->block.addr && s->seq == b->block.seq;

	if (same)
		s->times++;
	else if (s)
		forget_saved(m, e, *at);
	return same;
}

void model_tag_saved(struct model *m, const struct gmt_event *e)
{
	struct history *b;
	uint32_t place;
	bool again;

	m->tags++;
	b = enclosing(m, e);
	again = e->arg0 && is_saved_again(m, b, e);
	if (!b)
		return;
	if (b->born_forward != m->spans.forwards)
		tensors_note(&m->tensors, e, false);
	note_saving(m, b, e);
	if (!e->arg0)
		return;
	if (!again) {
		*map_put(&m->saved_ids, e->arg0, NULL) = place = saved_place(m);
		m->saved[place] = (struct model_saved){ b->block.addr, b->block.seq, e->device, 1 };
	}
	if (again || !b->saved++)
		model_change(m, b, CHANGE_SAVED, e);
	else if (b->saved_seq < m->small_seq)
		*(struct lives_retaken *)rows_add(&m->lives.retaken) =
			(struct lives_retaken){ e->seq, b->block.life - 1 };
	b->saved_seq = e->seq;
}

void model_tag_released(struct model *m, const struct gmt_event *e)
{
	const uint32_t *at = map_get(&m->saved_ids, e->arg0);

	if (at && !--m->saved[*at].times)
		forget_saved(m, e, *at);
}

void model_range_begin(struct model *m, const struct gmt_event *e)
{
	if (spans_range_kind(&m->spans, e->name) != RANGE_ZERO_GRAD)
		return;
	m->grads_live = false;
	m->grad_bytes = 0;
	m->clearings++;
}
