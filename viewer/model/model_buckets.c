/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of gradients that live, in order of birth, and which of them hold gradients by now. */
#include "../base/need.h"
#include "model_parts.h"

/* Buckets that are made where the gradients of others were cleared take their place: DDP makes them
 * anew in its second step, by the order in which gradients arrived, and frees the first later. */
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
	m->buckets_changed |= kept < m->bucket_count;
	m->bucket_count = kept;
}

/* The last ones are filled first, those of one generation in the order in which they were made. */
static bool is_filled_before(const struct model_bucket *a, const struct model_bucket *b)
{
	return a->generation != b->generation ? a->generation > b->generation : a < b;
}

static bool is_filled(const struct model *m, const struct model_bucket *b)
{
	uint64_t before = 0;

	for (size_t k = 0; k < m->bucket_count; k++) {
		const struct model_bucket *o = &m->bucket_list[k];

		if (o->block->block.device == b->block->block.device &&
		    o->framework == b->framework && is_filled_before(o, b))
			before += o->block->block.size;
	}
	if (!m->tags) /* no bytes of gradients are known */
		return m->grads_live && b->generation == m->bucket_generation;
	return m->grads_live && m->grad_bytes > before;
}

/* Which ones do may change with any of a few facts. */
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
