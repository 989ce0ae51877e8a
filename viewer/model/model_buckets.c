/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of gradients that live, in order of birth, and which of them hold gradients by now. */
#include "../base/need.h"
#include "model_parts.h"

void model_add_bucket(struct model *m, struct history *b, enum life_layer layer)
{
	*need_item(m->bucket_list, m->bucket_count, m->bucket_room) =
		(struct model_bucket){ b, layer == LIFE_BLOCK };
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

/* They are made in the order in which backward fills them. */
static uint64_t bytes_before(const struct model *m, size_t i)
{
	uint64_t bytes = 0;

	for (size_t k = 0; k < i; k++)
		if (m->bucket_list[k].block->block.device ==
			    m->bucket_list[i].block->block.device &&
		    m->bucket_list[k].framework == m->bucket_list[i].framework)
			bytes += m->bucket_list[k].block->block.size;
	return bytes;
}

/* Those that are older hold `before` bytes. */
static bool is_filled(const struct model *m, uint64_t before)
{
	return m->grads_live && (!m->tags || m->grad_bytes > before);
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
		bool filled = is_filled(m, bytes_before(m, i));

		if (filled != b->holds_gradients)
			model_change(m, b, filled ? CHANGE_FILLED : CHANGE_EMPTIED, e);
		b->holds_gradients = filled;
	}
}
