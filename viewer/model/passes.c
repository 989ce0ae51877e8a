/* SPDX-License-Identifier: Apache-2.0 */
/* Passes through the network, counted: calls of the outermost module, and backward passes. */
#include "doing.h"

/* A call that follows another one begins with its first gradients, which the caller makes. */
static bool is_called(struct spans *s, const struct gmt_event *e, enum act act)
{
	bool engine = s->now.thread->engine;
	bool first = act == ACT_BIRTH && !e->scope && !engine && s->now.signs & STACK_CALLED;
	bool called = first && s->nodes;

	s->nodes = !first && (s->nodes || e->scope || engine);
	return called;
}

static void end_backward(struct spans *s)
{
	s->now.backward_over = s->in_backward;
	s->in_backward = s->asked = false;
}

static void begin_backward(struct spans *s, const struct gmt_event *e, enum act act)
{
	s->now.called = is_called(s, e, act);
	if (s->now.called && s->in_backward) {
		s->forwards_before = s->forwards;
		end_backward(s);
	}
	s->backwards += !s->in_backward;
	s->in_forward &= s->in_backward;
	if (act == ACT_BIRTH && !s->now.thread->engine)
		s->asked = s->now.signs & STACK_ASKED;
	s->stepped &= s->in_backward;
	s->in_backward = true;
}

/* A pass begins with its first block, and ends with one from outside of it on a thread that is no
 * thread of autograd's (those also run the hooks of optimizers inside the backward pass). */
void passes_note(struct spans *s, const struct gmt_event *e, enum act act)
{
	enum block_stage stage = s->now.stage;

	if (stage_is_backward(stage)) {
		begin_backward(s, e, act);
		return;
	}
	if (act != ACT_BIRTH || s->now.thread->engine)
		return;
	s->forwards += stage == STAGE_FORWARD && !s->in_forward;
	s->in_forward = stage == STAGE_FORWARD;
	s->stepped |= stage == STAGE_OPTIMIZER;
	if (stage == STAGE_OPTIMIZER || s->in_backward)
		s->forwards_before = s->forwards;
	end_backward(s);
}
