/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does while a block is born or dies, and passes through the network.
 */
#include "../base/need.h"
#include "model_parts.h"

/* Frames decide where a range or a thread holds several things: the closure of an optimizer runs
 * forward passes inside its step, checkpointing runs them inside backward. */
enum block_stage model_stage(struct model *m, const struct gmt_event *e, uint32_t *signs)
{
	const struct model_thread *t = model_thread(m, e->thread);
	uint32_t s = *signs = signs_find(&m->signs, e->stack);

	if (s & STACK_STEP || (t->step && !(s & (STACK_FORWARD | STACK_BACKWARD))))
		return STAGE_OPTIMIZER;
	if (e->scope || t->engine)
		return s & (STACK_FORWARD | STACK_RECOMPUTE) ? STAGE_RECOMPUTE : STAGE_BACKWARD;
	if (s & STACK_ZERO_GRAD)
		return STAGE_ZERO_GRAD;
	if (s & STACK_FORWARD)
		return STAGE_FORWARD;
	return s & STACK_BACKWARD ? STAGE_BACKWARD : STAGE_OUTSIDE;
}

static bool is_backward(enum block_stage stage)
{
	return stage == STAGE_BACKWARD || stage == STAGE_RECOMPUTE;
}

static void begin_backward(struct model *m, bool birth, const struct gmt_event *e)
{
	m->backwards += !m->in_backward;
	m->in_forward &= m->in_backward;
	if (birth && !model_thread(m, e->thread)->engine)
		m->asked = signs_find(&m->signs, e->stack) & STACK_ASKED;
}

/* A pass begins with its first block, and ends with one from outside of it on a thread that is no
 * thread of autograd's (those also run the hooks of optimizers inside the backward pass). */
void model_note_stage(struct model *m, enum block_stage stage, bool birth,
		      const struct gmt_event *e)
{
	if (is_backward(stage)) {
		begin_backward(m, birth, e);
		m->stepped &= m->in_backward;
		m->in_backward = true;
		m->grads_live |= !m->tags;
		return;
	}
	if (!birth || model_thread(m, e->thread)->engine)
		return;
	m->forwards += stage == STAGE_FORWARD && !m->in_forward;
	m->in_forward = stage == STAGE_FORWARD;
	m->stepped |= stage == STAGE_OPTIMIZER;
	if (stage == STAGE_OPTIMIZER || m->in_backward)
		m->forwards_before = m->forwards;
	if (m->in_backward)
		model_end_walk(m, e);
	m->in_backward = m->asked = false;
}

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
	bool gone = b->block.died_seq && is_backward(b->died_stage);

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
		b->died_stage = model_stage(m, e, &b->died_signs);
		model_note_stage(m, b->died_stage, false, e);
	}
	b->block.died_seq = e->seq;
	b->block.died_ns = e->time_ns;
	b->died_forward = m->forwards;
	b->died_backward = m->backwards;
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
