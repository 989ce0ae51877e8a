/* SPDX-License-Identifier: Apache-2.0 */
/* What an event says of the phase that it is in. */
#include "doing.h"

/* A range's begin or end: what the phase is from here on. */
static enum hint range_hint(const struct spans *s, const struct gmt_event *e, enum range_kind kind)
{
	enum hint after = s->now.thread->engine && !doing_drives(s) ? HINT_SAME : HINT_NONE;

	if (kind == RANGE_OTHER)
		return HINT_SAME;
	if (kind == RANGE_PROFILER)
		return HINT_NONE;
	if (e->kind == GMT_RANGE_END)
		return kind == RANGE_STEP && s->now.thread->outer_step ? HINT_OPTIMIZER : after;
	return kind == RANGE_STEP || after == HINT_SAME ? HINT_OPTIMIZER : HINT_ZERO_GRAD;
}

/* In a closure nothing is optimized between a forward pass and its backward pass: a loss. */
static bool is_loss(const struct spans *s)
{
	const struct span *last = &s->items[s->count - 1];

	return last->phase == PHASE_FORWARD && last->number &&
	       last->number == s->now.thread->outer_step;
}

/* What hooks do inside the backward pass is of the optimizer that they call. */
static enum hint stage_hint(const struct spans *s, const struct gmt_event *e, bool frees)
{
	const struct span_thread *t = s->now.thread;

	if (s->now.stage == STAGE_OPTIMIZER && is_loss(s))
		return HINT_SAME;
	if (s->now.stage == STAGE_OPTIMIZER || (t->zero_grad && t->engine && !doing_drives(s)))
		return HINT_OPTIMIZER;
	if (s->now.stage == STAGE_ZERO_GRAD)
		return HINT_ZERO_GRAD;
	if (stage_is_backward(s->now.stage))
		return e->scope || e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_MEM_ALLOC ||
				       e->kind == GMT_TAG_GRAD || e->kind == GMT_THINNED
			       ? HINT_BACKWARD
			       : HINT_SAME;
	if (s->now.stage == STAGE_FORWARD)
		return frees ? HINT_SAME : HINT_MODULE;
	if (e->kind == GMT_TAG_SAVED)
		return HINT_SAVED;
	return doing_drives(s) ? HINT_NONE : HINT_SAME;
}

/* Calls of CUDA count where no framework says what its blocks are. */
enum hint hints_of(struct spans *s, const struct gmt_event *e, enum act act)
{
	if (e->seq <= s->state_seq)
		return HINT_SAME;
	if (act == ACT_RANGE)
		return range_hint(s, e, spans_range_kind(s, e->name));
	switch (e->kind) {
	case GMT_BLOCK_ALLOC:
		s->framework = true;
		return stage_hint(s, e, false);
	case GMT_BLOCK_FREE:
		return stage_hint(s, e, true);
	case GMT_BLOCK_OOM:
	case GMT_THINNED:
	case GMT_TAG_SAVED:
	case GMT_TAG_GRAD:
		return stage_hint(s, e, false);
	case GMT_MEM_ALLOC:
	case GMT_MEM_FREE:
		return s->framework ? HINT_SAME : stage_hint(s, e, e->kind == GMT_MEM_FREE);
	default:
		return HINT_SAME;
	}
}
