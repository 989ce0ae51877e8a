/* SPDX-License-Identifier: Apache-2.0 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

/* What an event says of the phase that it is in. */
enum hint {
	HINT_SAME,   /* nothing */
	HINT_NONE,   /* a block of the thread that drives, of no known phase */
	HINT_SAVED,  /* saved for backward outside of any module: a loss */
	HINT_MODULE, /* a module's forward */
	HINT_BACKWARD,
	HINT_OPTIMIZER,
	HINT_ZERO_GRAD,
};

enum range_kind { RANGE_OTHER, RANGE_STEP, RANGE_ZERO_GRAD, RANGE_PROFILER };

static const struct {
	const char *name, *text, *noun;
} phases[PHASES] = {
	[PHASE_SETUP] = { "setup", "setup", "setup" },
	[PHASE_FORWARD] = { "forward", "forward", "forward pass" },
	[PHASE_BACKWARD] = { "backward", "backward", "backward pass" },
	[PHASE_OTHER] = { "other", "between passes", "time between passes" },
	[PHASE_OPTIMIZER] = { "optimizer", "optimizer step", "optimizer step" },
	[PHASE_ZERO_GRAD] = { "zero_grad", "zero_grad", "call of zero_grad" },
};

const char *phase_name(enum phase phase)
{
	return phases[phase].name;
}

const char *phase_text(enum phase phase)
{
	return phases[phase].text;
}

const char *phase_noun(enum phase phase)
{
	return phases[phase].noun;
}

void spans_init(struct spans *s, const struct model *m, int device, bool framework,
		struct stacks *stacks)
{
	*s = (struct spans){ .model = m, .device = &m->devices[device], .framework = framework };
	callers_init(&s->callers, stacks);
}

void spans_guess(struct spans *s, const struct model *m, struct stacks *stacks)
{
	spans_init(s, m, 0, true, stacks);
	s->guessing = true;
}

bool spans_fit(const struct spans *s, int device)
{
	return s->device == &s->model->devices[device] && s->framework == s->device->framework;
}

void spans_free(struct spans *s)
{
	callers_free(&s->callers);
	map_free(&s->thread_ids);
	map_free(&s->names);
	free(s->threads);
	free(s->items);
}

void extent_join(struct extent *a, const struct extent *b)
{
	a->last_ns = b->last_ns;
	a->last_seq = b->last_seq;
	a->end_bytes = b->end_bytes;
	a->growth += b->growth;
	if (b->peak <= a->peak)
		return;
	a->peak = b->peak;
	a->peak_seq = b->peak_seq;
	a->peak_ns = b->peak_ns;
	a->peak_stack = b->peak_stack;
	a->peak_node = b->peak_node;
}

static struct span_thread *thread_of(struct spans *s, uint32_t id)
{
	bool fresh;
	uint32_t *at = map_put(&s->thread_ids, id, &fresh);

	if (fresh) {
		struct defs_text none = { "", 0 };
		const struct defs_thread *d = defs_thread(s->model->defs, id);
		struct defs_text name = d ? d->name : none;

		*at = s->thread_count;
		s->threads = need_grow(s->threads, &s->thread_room, s->thread_count,
				       sizeof(*s->threads));
		s->threads[s->thread_count++] =
			(struct span_thread){ .engine = name.len >= 11 &&
							!memcmp(name.s, "pt_autograd", 11) };
	}
	return &s->threads[*at];
}

static enum range_kind range_kind(struct spans *s, uint32_t id)
{
	static const struct {
		const char *start;
		enum range_kind kind;
	} known[] = { { "Optimizer.step#", RANGE_STEP },
		      { "Optimizer.zero_grad#", RANGE_ZERO_GRAD },
		      { "ProfilerStep#", RANGE_PROFILER } };
	struct defs_text name = defs_string(s->model->defs, id);
	bool fresh;
	uint32_t *at = map_put(&s->names, id, &fresh);

	if (!fresh)
		return *at;
	*at = RANGE_OTHER;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (name.len && !strncmp(name.s, known[i].start, strlen(known[i].start)))
			*at = known[i].kind;
	return *at;
}

static bool drives(const struct spans *s, const struct gmt_event *e)
{
	return !s->driver || s->driver == e->thread + 1ull;
}

/* A range's begin or end: what the phase is from here on. */
static enum hint range_hint(struct spans *s, const struct gmt_event *e, struct span_thread *t)
{
	bool begins = e->kind == GMT_RANGE_BEGIN;
	enum hint after = t->engine && !drives(s, e) ? HINT_SAME : HINT_NONE;

	switch (range_kind(s, e->name)) {
	case RANGE_STEP:
		t->optimizer = begins ? e->arg0 : 0;
		t->name = begins ? e->name : 0;
		return begins ? HINT_OPTIMIZER : after;
	case RANGE_ZERO_GRAD:
		t->zero_grad = begins ? e->arg0 : 0;
		if (!begins)
			return after;
		return after == HINT_SAME ? HINT_OPTIMIZER : HINT_ZERO_GRAD;
	case RANGE_PROFILER:
		s->profiler = begins ? e->arg0 : 0;
		return HINT_NONE;
	default:
		return HINT_SAME;
	}
}

static enum hint block_hint(struct spans *s, const struct gmt_event *e, struct span_thread *t)
{
	struct caller c;

	if (t->optimizer)
		return HINT_OPTIMIZER;
	if (t->zero_grad)
		return t->engine && !drives(s, e) ? HINT_OPTIMIZER : HINT_ZERO_GRAD;
	if (e->scope || e->kind == GMT_TAG_GRAD) {
		t->engine = true;
		return HINT_BACKWARD;
	}
	c = callers_find(&s->callers, e->stack);
	if (c.optimizer)
		return HINT_OPTIMIZER;
	if (t->engine && !(s->driver && drives(s, e)))
		return e->kind == GMT_BLOCK_ALLOC ? HINT_BACKWARD : HINT_SAME;
	if (c.module && (e->kind == GMT_BLOCK_FREE || e->kind == GMT_MEM_FREE))
		return HINT_SAME;
	if (c.module)
		return HINT_MODULE;
	if (e->kind == GMT_TAG_SAVED)
		return HINT_SAVED;
	return drives(s, e) ? HINT_NONE : HINT_SAME;
}

static enum hint hint_of(struct spans *s, const struct gmt_event *e, struct span_thread *t)
{
	if (e->seq <= s->model->state_seq)
		return HINT_SAME;
	switch (e->kind) {
	case GMT_RANGE_BEGIN:
	case GMT_RANGE_END:
		return range_hint(s, e, t);
	case GMT_BLOCK_ALLOC:
	case GMT_BLOCK_FREE:
	case GMT_BLOCK_OOM:
	case GMT_TAG_SAVED:
	case GMT_TAG_GRAD:
		return block_hint(s, e, t);
	case GMT_MEM_ALLOC:
	case GMT_MEM_FREE:
		return s->framework ? HINT_SAME : block_hint(s, e, t);
	default:
		return HINT_SAME;
	}
}

static uint64_t bytes_now(const struct spans *s)
{
	return s->framework ? s->device->blocks.now : s->device->driver.now;
}

static struct span *push(struct spans *s, enum phase phase, const struct gmt_event *e)
{
	struct extent extent = { .first_ns = e->time_ns,
				 .first_seq = e->seq,
				 .begin_bytes = s->bytes,
				 .end_bytes = s->bytes,
				 .peak = s->bytes,
				 .peak_seq = e->seq,
				 .peak_ns = e->time_ns };

	s->items = need_grow(s->items, &s->room, s->count, sizeof(*s->items));
	s->items[s->count] =
		(struct span){ .extent = extent, .phase = phase, .profiler = s->profiler };
	return &s->items[s->count++];
}

static struct span *back(struct spans *s, size_t i)
{
	return s->count > i ? &s->items[s->count - 1 - i] : NULL;
}

/* The last span becomes part of the one before it. */
static void join_last(struct spans *s)
{
	struct span *before = back(s, 1);

	extent_join(&before->extent, &back(s, 0)->extent);
	before->work |= back(s, 0)->work;
	before->gradients += back(s, 0)->gradients;
	s->count--;
}

static bool is_gap(const struct span *span)
{
	return span->phase == PHASE_OTHER || span->phase == PHASE_SETUP;
}

/* What a gap was, now that the next hint is here. */
static void close_gap(struct spans *s, enum hint hint)
{
	struct span *gap = back(s, 0), *before = back(s, 1);
	enum phase was = before ? before->phase : PHASE_SETUP;

	if (!gap || !is_gap(gap) || gap->phase == PHASE_SETUP)
		return;
	if (before->profiler == gap->profiler &&
	    (!gap->work || (was == PHASE_BACKWARD && hint == HINT_BACKWARD) ||
	     (was == PHASE_FORWARD && (hint != HINT_MODULE || s->trains))))
		join_last(s);
	else if (hint == HINT_BACKWARD)
		gap->phase = PHASE_FORWARD;
}

static void go_forward(struct spans *s, const struct gmt_event *e, enum hint hint)
{
	s->driver = s->trains && s->driver ? s->driver : e->thread + 1ull;
	close_gap(s, hint);
	if (back(s, 0)->phase != PHASE_FORWARD)
		push(s, PHASE_FORWARD, e);
}

/* The optimizer by hooks inside the backward pass: one span beside that of the pass, and which of
 * the two goes on comes last. */
static bool take_turns(struct spans *s, enum phase phase)
{
	struct span *last = back(s, 0), *before = back(s, 1), swap;

	if (!before || before->phase != phase || !(last->in_backward || before->in_backward))
		return false;
	swap = *before;
	*before = *last;
	*last = swap;
	return true;
}

static void go_backward(struct spans *s, const struct gmt_event *e)
{
	s->trains = true;
	close_gap(s, HINT_BACKWARD);
	if (back(s, 0)->phase == PHASE_BACKWARD)
		return;
	if (!back(s, 0)->in_backward || !take_turns(s, PHASE_BACKWARD))
		push(s, PHASE_BACKWARD, e);
}

static void optimize(struct spans *s, const struct gmt_event *e, const struct span_thread *t)
{
	bool in_backward = t->engine && s->driver && !drives(s, e);
	struct span *last;

	s->trains = true;
	if (!in_backward)
		s->driver = e->thread + 1ull;
	close_gap(s, HINT_OPTIMIZER);
	last = back(s, 0);
	if (last->phase == PHASE_OPTIMIZER &&
	    (last->number == t->optimizer || last->in_backward || in_backward))
		return;
	if (in_backward && take_turns(s, PHASE_OPTIMIZER))
		return;
	last = push(s, PHASE_OPTIMIZER, e);
	last->name = t->name;
	last->number = t->optimizer;
	last->in_backward = in_backward;
}

static void pause(struct spans *s, const struct gmt_event *e)
{
	struct span *last = back(s, 0);

	if (is_gap(last) && last->profiler == s->profiler)
		return;
	push(s, PHASE_OTHER, e);
}

static void zero_grad(struct spans *s, const struct gmt_event *e)
{
	close_gap(s, HINT_ZERO_GRAD);
	if (back(s, 0)->phase != PHASE_ZERO_GRAD)
		push(s, PHASE_ZERO_GRAD, e);
}

static void advance(struct spans *s, const struct gmt_event *e, enum hint hint,
		    const struct span_thread *t)
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
		optimize(s, e, t);
		break;
	case HINT_ZERO_GRAD:
		zero_grad(s, e);
		break;
	}
}

static void note(struct spans *s, const struct gmt_event *e)
{
	struct span *span = back(s, 0);
	struct extent *x = &span->extent;

	x->last_ns = e->time_ns;
	x->last_seq = e->seq;
	x->end_bytes = bytes_now(s);
	x->growth += (int64_t)(x->end_bytes - s->bytes);
	s->bytes = x->end_bytes;
	if (x->end_bytes > x->peak) {
		x->peak = x->end_bytes;
		x->peak_seq = e->seq;
		x->peak_ns = e->time_ns;
		x->peak_stack = e->stack;
		x->peak_node = e->kind == GMT_BLOCK_ALLOC ? e->name : 0;
	}
	if (e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_BLOCK_FREE || e->kind == GMT_MEM_ALLOC)
		span->work = true;
	span->gradients += e->kind == GMT_TAG_GRAD;
	if (span->phase == PHASE_OPTIMIZER && !span->caller && e->stack)
		span->caller = callers_find(&s->callers, e->stack).lines;
}

void spans_event(struct spans *s, const struct gmt_event *e)
{
	struct span_thread *t = thread_of(s, e->thread);

	if (s->guessing && e->kind == GMT_BLOCK_ALLOC && e->device >= 0 &&
	    e->device < MODEL_DEVICES) {
		s->device = &s->model->devices[e->device];
		s->guessing = false;
	}
	if (!s->count)
		push(s, PHASE_SETUP, e);
	advance(s, e, hint_of(s, e, t), t);
	note(s, e);
}
