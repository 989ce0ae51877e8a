/* SPDX-License-Identifier: Apache-2.0 */
/* What a block's death says of it, and of others. */
#include "../base/need.h"
#include "model_parts.h"

static void note_left(struct model_left *l, const struct history *b)
{
	enum { WORKSPACES = 2 };

	if (l->backward != b->born_backward)
		*l = (struct model_left){ .backward = b->born_backward, .most = l->most };
	l->bytes += b->block.size;
	if (++l->blocks > WORKSPACES && l->bytes > l->most)
		l->most = l->bytes;
}

/* Whether gradients stay where they arrived. Without tags: what backward makes and leaves behind.
 */
static void note_gradient(struct model *m, const struct history *b)
{
	bool gone = b->block.died_seq && stage_is_backward(b->died_stage);

	if (b->block.died_seq && !gone && b->stage == STAGE_BACKWARD)
		model_note_gradient_size(m, b->block.size);
	if (b->signs & STACK_BUCKET)
		m->buckets += b->block.size;
	if (b->tags & BLOCK_GRAD)
		*(gone ? &m->grads_gone : &m->grads_kept) += b->block.size;
	else if (!m->tags && !gone && b->stage == STAGE_BACKWARD)
		note_left(&m->left, b);
}

void model_note_death(struct model *m, struct history *b, const struct gmt_event *e)
{
	/* a birth at its address without a free: nobody knows where it ended */
	if (e->kind != GMT_BLOCK_ALLOC && e->kind != GMT_MEM_ALLOC) {
		b->died_stage = m->spans.now.stage;
		b->died_signs = m->spans.now.signs;
	}
	b->block.died_seq = e->seq;
	b->block.died_ns = e->time_ns;
	b->died_forward = m->spans.forwards;
	b->died_backward = m->spans.backwards;
	note_gradient(m, b);
	model_note_before_end(m, b);
	model_note_habits(m, b);
	model_note_pass_end(m, b);
	model_note_heir(m, b, e);
	model_row_died(m, b, e);
}

void model_settle(struct model *m)
{
	bool settled = m->settled;

	model_settle_before(m);
	for (int d = 0; d < MODEL_DEVICES && !settled; d++) {
		LIVE_EACH(&m->devices[d].live, b)
		note_gradient(m, b);
	}
	model_rows_settle(m);
}
