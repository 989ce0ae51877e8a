/* SPDX-License-Identifier: Apache-2.0 */
#include "spans.h"

#include "../../format/record.h"

#include "doing.h"

const struct phase_words phases[PHASES] = {
	[PHASE_SETUP] = { "setup", "setup", "setup", 's' },
	[PHASE_FORWARD] = { "forward", "forward", "forward pass", 'F' },
	[PHASE_BACKWARD] = { "backward", "backward", "backward pass", 'B' },
	[PHASE_OTHER] = { "other", "between passes", "time between passes", '-' },
	[PHASE_OPTIMIZER] = { "optimizer", "optimizer step", "optimizer step", 'O' },
	[PHASE_ZERO_GRAD] = { "zero_grad", "zero_grad", "call of zero_grad", 'z' },
	[PHASE_EVALUATION] = { "evaluation", "evaluation", "evaluation", 'E' },
};

/* The phase that an event is evidence of. */
enum hint {
	HINT_SAME,   /* none: the phase goes on */
	HINT_NONE,   /* no phase: other work of the thread that runs forward */
	HINT_SAVED,  /* saved for backward outside of any module: a loss */
	HINT_MODULE, /* a module's forward */
	HINT_BACKWARD,
	HINT_OPTIMIZER,
	HINT_ZERO_GRAD,
};

/* The phase after the begin or end of a range. */
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

/* True between the forward and the backward pass of a closure. Nothing is optimized there, so the
 * work is for the loss. */
static bool is_loss(const struct spans *s)
{
	const struct span *last = &s->items[s->count - 1];

	return last->phase == PHASE_FORWARD && last->number &&
	       last->number == s->now.thread->outer_step;
}

/* Work on autograd's threads in zero_grad is the optimizer's: a hook called it in backward. */
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

/* Allocations by CUDA calls count only in recordings without framework blocks. */
static enum hint hints_of(struct spans *s, const struct gmt_event *e, enum act act)
{
	if (e->seq <= s->state_seq || s->bare)
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

/* Counts the passes through the network: calls of the outermost module, and backward passes. */

/* True if another call of backward() begins: the calling thread allocates its first gradients after
 * backward nodes ran. */
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
	if (!s->in_backward) {
		s->backwards++;
		s->in_forward = false;
	}
	if (act == ACT_BIRTH && !s->now.thread->engine)
		s->asked = s->now.signs & STACK_ASKED;
	if (!s->in_backward)
		s->stepped = false;
	s->in_backward = true;
}

/* A pass begins with its first block. It ends with the next block from outside of it, but not with
 * one of autograd's threads, which also run hooks of optimizers inside the backward pass. */
static void passes_note(struct spans *s, const struct gmt_event *e, enum act act)
{
	enum block_stage stage = s->now.stage;

	if (stage_is_backward(stage)) {
		begin_backward(s, e, act);
		return;
	}
	if (act != ACT_BIRTH || s->now.thread->engine)
		return;
	if (stage == STAGE_FORWARD && !s->in_forward)
		s->forwards++;
	s->in_forward = stage == STAGE_FORWARD;
	if (stage == STAGE_OPTIMIZER)
		s->stepped = true;
	if (stage == STAGE_OPTIMIZER || s->in_backward)
		s->forwards_before = s->forwards;
	end_backward(s);
}

void spans_init(struct spans *s, const struct defs *defs, struct signs *signs)
{
	*s = (struct spans){ .defs = defs, .signs = signs };
}

void spans_free(struct spans *s)
{
	for (size_t i = 0; i < s->thread_count; i++)
		free(s->threads[i]);
	for (size_t i = 0; i < s->level_count; i++)
		free(s->levels[i]);
	map_free(&s->thread_ids);
	map_free(&s->names);
	map_items_free(&s->step_ends);
	free(s->threads);
	free(s->levels);
	free(s->changes);
	free(s->items);
}

/* Adds a span, which is the latest from now on. */
static struct span *push_span(struct spans *s, enum phase phase, const struct gmt_event *e)
{
	if (s->count)
		levels_end(s);
	levels_begin(s, e);
	*need_item(s->items, s->count, s->room) = (struct span){
		.extent = { .first_ns = e->time_ns, .first_seq = e->seq },
		.phase = phase,
		.profiler = s->profiler,
	};
	return &s->items[s->count - 1];
}

static struct span *back(struct spans *s, size_t i)
{
	return s->count > i ? &s->items[s->count - 1 - i] : NULL;
}

/* The last span becomes part of the one before it. */
static void join_last(struct spans *s, const struct gmt_event *e)
{
	struct span *before = back(s, 1);

	levels_end(s);
	levels_join(s, before, back(s, 0));
	levels_begin(s, e);
	before->extent.last_seq = back(s, 0)->extent.last_seq;
	before->extent.last_ns = back(s, 0)->extent.last_ns;
	before->work |= back(s, 0)->work;
	before->left_out |= back(s, 0)->left_out;
	before->refused |= back(s, 0)->refused;
	before->blind |= back(s, 0)->blind;
	before->gradients += back(s, 0)->gradients;
	before->blocks += back(s, 0)->blocks;
	s->count--;
}

static bool is_gap(const struct span *span)
{
	return span->phase == PHASE_OTHER || span->phase == PHASE_SETUP;
}

/* Decides by the next hint what the gap before it was. */
static void close_gap(struct spans *s, const struct gmt_event *e, enum hint hint)
{
	struct span *gap = back(s, 0), *before = back(s, 1);
	enum phase was = before ? before->phase : PHASE_SETUP;

	if (!gap || !is_gap(gap) || gap->phase == PHASE_SETUP)
		return;
	if (before->profiler == gap->profiler &&
	    (!gap->work || (was == PHASE_BACKWARD && hint == HINT_BACKWARD) ||
	     (was == PHASE_FORWARD && (hint != HINT_MODULE || s->trains))))
		join_last(s, e);
	else if (hint == HINT_BACKWARD)
		gap->phase = PHASE_FORWARD;
}

/* Number of the open step that the event belongs to, 0 = none. Autograd's threads work in the step
 * of the thread that runs forward. */
static uint64_t step_around(const struct spans *s)
{
	const struct span_thread *t = s->now.thread;
	const uint32_t *at = t->engine && s->driver ? map_get(&s->thread_ids, s->driver - 1) : NULL;

	return t->outer_step || !at ? t->outer_step : s->threads[*at]->outer_step;
}

/* If a step's closure runs passes, its work before the first pass made their inputs and is not the
 * optimizer's. */
static void undo_step(struct spans *s, uint64_t step)
{
	struct span *last = back(s, 0);

	if (step && last->phase == PHASE_OPTIMIZER && last->number == step &&
	    (!last->work || s->closure != step)) {
		last->phase = PHASE_OTHER;
		s->optimized = 0;
	}
}

/* A pass begins or goes on, perhaps in the closure of a step. */
static void meet_pass(struct spans *s)
{
	uint64_t step = step_around(s);

	undo_step(s, step);
	s->closure = step ? step : s->closure;
}

static bool is_without_gradients(const struct spans *s, const struct span *span)
{
	return s->tags && span->phase == PHASE_FORWARD && !span->kept;
}

/* Number of the event's pass. A pass can save its inputs before it allocates its first block. */
static uint32_t pass_of(const struct spans *s, const struct gmt_event *e)
{
	return s->forwards +
	       (e->kind == GMT_TAG_SAVED && s->now.stage == STAGE_FORWARD && !s->in_forward);
}

/* True if a new span must begin, because nothing was saved of the pass before. Once such a pass is
 * over, it is joined to one of its kind before it. */
static bool begins_apart(struct spans *s, const struct gmt_event *e)
{
	const struct span *last = back(s, 0), *before = back(s, 1);

	if (!is_without_gradients(s, last) || last->pass == pass_of(s, e))
		return false;
	if (before && is_without_gradients(s, before) && before->profiler == last->profiler &&
	    before->number == last->number)
		join_last(s, e);
	return true;
}

static void go_forward(struct spans *s, const struct gmt_event *e, enum hint hint)
{
	s->driver = s->trains && s->driver ? s->driver : e->thread + 1ull;
	meet_pass(s);
	close_gap(s, e, hint);
	if (back(s, 0)->phase != PHASE_FORWARD || begins_apart(s, e))
		push_span(s, PHASE_FORWARD, e)->number = s->now.thread->outer_step;
	back(s, 0)->pass = pass_of(s, e);
}

/* If hooks call the optimizer inside a backward pass, all its work is one span beside that of the
 * pass. The one of the two that goes on is moved to the end. */
static bool take_turns(struct spans *s, const struct gmt_event *e, enum phase phase)
{
	struct span *last = back(s, 0), *before = back(s, 1), swap;

	if (!before || before->phase != phase || !(last->in_backward || before->in_backward))
		return false;
	levels_end(s);
	levels_begin(s, e);
	swap = *before;
	*before = *last;
	*last = swap;
	return true;
}

static void go_backward(struct spans *s, const struct gmt_event *e)
{
	s->trains = true;
	meet_pass(s);
	close_gap(s, e, HINT_BACKWARD);
	if (back(s, 0)->phase == PHASE_BACKWARD && !s->now.called)
		return;
	back(s, 0)->kept = true;
	if (s->now.called || !back(s, 0)->in_backward || !take_turns(s, e, PHASE_BACKWARD))
		push_span(s, PHASE_BACKWARD, e);
}

/* True for an optimizer's range and the work that frames show as that optimizer's. */
static bool is_same_step(const struct span *last, uint64_t number)
{
	return last->phase == PHASE_OPTIMIZER &&
	       (last->in_backward || last->number == number || !last->number || !number);
}

static void optimize(struct spans *s, const struct gmt_event *e, uint32_t name, uint64_t number)
{
	const struct span_thread *t = s->now.thread;
	bool in_backward = t->engine && s->driver && !doing_drives(s);
	struct span *last;

	s->trains = true;
	if (!in_backward)
		s->driver = e->thread + 1ull;
	close_gap(s, e, HINT_OPTIMIZER);
	last = back(s, 0);
	if (is_same_step(last, number) || (last->phase == PHASE_OPTIMIZER && in_backward)) {
		last->name = last->name ? last->name : name;
		last->number = last->number ? last->number : number;
		return;
	}
	if (in_backward && take_turns(s, e, PHASE_OPTIMIZER))
		return;
	last = push_span(s, PHASE_OPTIMIZER, e);
	last->name = name;
	last->number = number;
	last->in_backward = in_backward;
}

static void pause(struct spans *s, const struct gmt_event *e)
{
	struct span *last = back(s, 0);

	if (is_gap(last) && last->profiler == s->profiler)
		return;
	push_span(s, PHASE_OTHER, e);
}

static void zero_grad(struct spans *s, const struct gmt_event *e)
{
	undo_step(s, s->now.thread->outer_step);
	close_gap(s, e, HINT_ZERO_GRAD);
	if (back(s, 0)->phase != PHASE_ZERO_GRAD)
		push_span(s, PHASE_ZERO_GRAD, e);
}

static void go_on(struct spans *s, const struct gmt_event *e, enum hint hint)
{
	switch (hint) {
	case HINT_SAME:
		break;
	case HINT_NONE:
		pause(s, e);
		break;
	case HINT_SAVED:
	case HINT_MODULE:
		go_forward(s, e, hint);
		break;
	case HINT_BACKWARD:
		go_backward(s, e);
		break;
	case HINT_OPTIMIZER:
		optimize(s, e, s->now.thread->outer_name, s->now.thread->outer_step);
		break;
	case HINT_ZERO_GRAD:
		zero_grad(s, e);
		break;
	}
}

/* True at the end of an optimizer's range that no span shows yet: after its closure the step might
 * need no memory. */
static bool ends_step(struct spans *s, const struct gmt_event *e)
{
	return e->kind == GMT_RANGE_END && spans_range_kind(s, e->name) == RANGE_STEP &&
	       !s->now.thread->outer_step && e->seq > s->state_seq && e->arg0 != s->optimized &&
	       e->arg0 != back(s, 0)->number;
}

/* 1 for a block that an optimizer's step allocates, -1 for one that it frees. Autograd's threads do
 * not count: they free late what a backward pass used. */
static int32_t left_behind(const struct span *span, const struct spans *s,
			   const struct gmt_event *e)
{
	if (span->phase == PHASE_FORWARD)
		return e->kind == GMT_BLOCK_ALLOC && !span->kept;
	if (span->phase != PHASE_OPTIMIZER || !doing_drives(s))
		return 0;
	return (e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_THINNED) - (e->kind == GMT_BLOCK_FREE);
}

static bool is_blind(const struct spans *s, const struct gmt_event *e)
{
	return e->kind == GMT_BLOCK_ALLOC && !e->stack && !s->now.thread->engine &&
	       doing_drives(s) && e->seq > s->state_seq;
}

static void note_act(struct spans *s, struct span *span, const struct gmt_event *e)
{
	if (e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_BLOCK_FREE || e->kind == GMT_MEM_ALLOC ||
	    e->kind == GMT_THINNED)
		span->work = true;
	if (e->kind == GMT_THINNED && !e->stack && !e->scope)
		span->left_out = true;
	if (e->kind == GMT_BLOCK_OOM)
		span->refused = true;
	span->blind |= is_blind(s, e);
	s->python |= s->now.signs & STACK_PYTHON;
	span->gradients += e->kind == GMT_TAG_GRAD;
	span->blocks += left_behind(span, s, e);
	if (e->kind == GMT_TAG_SAVED)
		span->kept = true;
	if ((span->phase == PHASE_OPTIMIZER || span->phase == PHASE_FORWARD) && !span->stack &&
	    s->now.signs & STACK_PYTHON)
		span->stack = e->stack;
}

static void note_in_span(struct spans *s, const struct gmt_event *e, enum act act)
{
	struct span *span = back(s, 0);

	span->extent.last_ns = s->last_ns = e->time_ns;
	span->extent.last_seq = s->last_seq = e->seq;
	if (act != ACT_NONE)
		note_act(s, span, e);
	if (span->phase == PHASE_BACKWARD && s->asked)
		span->asked = true;
	if (span->phase == PHASE_OPTIMIZER && span->work)
		s->optimized = span->number;
}

static void begin_spans(struct spans *s, const struct gmt_event *e)
{
	s->tags = !strcmp(defs_meta(s->defs, "torch.tags").s, "on");
	push_span(s, PHASE_SETUP, e);
}

void spans_event(struct spans *s, const struct gmt_event *e)
{
	enum act act = doing_note(s, e);

	if (s->now.is_work)
		passes_note(s, e, act);
	if (e->kind == GMT_END && !defs_meta(s->defs, "source").len)
		s->ended = true;
	if (!s->count)
		begin_spans(s, e);
	if (ends_step(s, e))
		optimize(s, e, e->name, e->arg0);
	else if (act != ACT_NONE)
		go_on(s, e, hints_of(s, e, act));
	note_in_span(s, e, act);
}
