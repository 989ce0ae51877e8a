/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include "optimizers.h"

const struct steps_basis_words steps_bases[] = {
	[STEPS_NONE] = { "none", "no step was found" },
	[STEPS_PROFILER] = { "profiler", "steps as torch.profiler counts them" },
	[STEPS_OPTIMIZER] = { "optimizer", "a step ends with the optimizer" },
	[STEPS_BACKWARD] = { "backward", "no optimizer's step was seen: a step is a forward and a "
					 "backward pass" },
	[STEPS_FORWARD] = { "forward", "no backward pass: a step is one call of an outermost "
				       "module, or several "
				       "without an allocation between them" },
};

/* State of the walk that groups spans into steps. */
struct walk {
	struct steps *steps;
	const struct spans *spans;
	struct optimizers optimizers;
	size_t open;	 /* first span after the last optimizer's step */
	bool worked;	 /* forward, backward, or work that was left out since then */
	bool backward;	 /* backward since then, for parameters' gradients */
	bool repeats;	 /* no forward since the last backward pass: the next uses its graph too */
	bool closed;	 /* the next work belongs to a new step */
	bool hooked;	 /* the optimizer was called from the backward pass */
	uint64_t number; /* of the latest optimizer's range */
	uint64_t seen;	 /* optimizers of this step, a bit each */
};

static struct step *current(struct walk *w)
{
	return &w->steps->items[w->steps->count - 1];
}

static void new_step(struct walk *w, size_t first)
{
	struct steps *s = w->steps;

	if (s->count > 1 && first <= current(w)->first)
		return;
	*need_item(s->items, s->count, s->room) = (struct step){ .first = first };
	w->seen = 0;
	w->closed = w->hooked = false;
}

/* The first step begins where the first work does. */
static void begin_work(struct walk *w, size_t i)
{
	if (w->steps->count == 1)
		new_step(w, i);
}

static enum steps_basis basis_of(const struct spans *s)
{
	static const enum steps_basis says[PHASES] = { [PHASE_OPTIMIZER] = STEPS_OPTIMIZER,
						       [PHASE_BACKWARD] = STEPS_BACKWARD,
						       [PHASE_FORWARD] = STEPS_FORWARD };
	enum steps_basis basis = STEPS_NONE;

	for (size_t i = 0; i < s->count; i++) {
		enum steps_basis b = says[s->items[i].phase];

		if (s->items[i].profiler)
			return STEPS_PROFILER;
		if (b && (!basis || b < basis))
			basis = b;
	}
	return basis;
}

/* True if this optimizer, or one that does not take turns with it, has stepped in this step. */
static bool is_next(const struct walk *w, unsigned optimizer)
{
	for (unsigned i = 0; i < w->optimizers.count; i++)
		if (w->seen >> i & 1 &&
		    (i == optimizer || !optimizers_in_turn(&w->optimizers, i, optimizer)))
			return true;
	return false;
}

static void go_on_from(struct walk *w, size_t i)
{
	w->open = i;
	w->worked = w->backward = false;
}

static void meet_optimizer(struct walk *w, size_t i)
{
	const struct span *span = &w->spans->items[i];
	unsigned optimizer;
	bool again; /* its closure ran the passes once more */

	begin_work(w, i);
	current(w)->ended = true;
	if (span->in_backward) {
		w->hooked = true;
		return;
	}
	optimizer = optimizers_of(&w->optimizers, i);
	again = span->number && span->number == w->number;
	w->number = span->number;
	if (!again && w->worked && ((w->closed && !w->repeats) || is_next(w, optimizer)))
		new_step(w, w->open);
	current(w)->ended = true;
	w->seen |= 1ull << optimizer;
	go_on_from(w, i + 1);
}

/* If gradients are cleared after a backward pass without an optimizer's step, that was skipped (by
 * a gradient scaler, after an overflow). The step is over then, unless more backward passes use its
 * graph. */
static void meet_zero_grad(struct walk *w, size_t i)
{
	if (w->worked && !w->backward)
		return;
	if (w->backward && !w->hooked) {
		if (current(w)->ended || (w->closed && !w->repeats))
			new_step(w, w->open);
		w->closed = true;
		w->repeats = w->spans->forwards;
	}
	go_on_from(w, i + 1);
}

static void by_optimizer(struct walk *w, size_t i)
{
	enum phase phase = w->spans->items[i].phase;

	if (phase == PHASE_FORWARD || phase == PHASE_BACKWARD) {
		begin_work(w, i);
		if (phase == PHASE_FORWARD && w->hooked)
			new_step(w, i);
		w->worked = true;
		if (phase == PHASE_FORWARD)
			w->repeats = false;
		if (phase == PHASE_BACKWARD && !w->spans->items[i].asked)
			w->backward = true;
	} else if (phase == PHASE_OPTIMIZER) {
		meet_optimizer(w, i);
	} else if (phase == PHASE_ZERO_GRAD && w->steps->count > 1) {
		meet_zero_grad(w, i);
	} else if (phase == PHASE_EVALUATION && !w->worked) {
		go_on_from(w, i + 1);
	} else if (phase == PHASE_OTHER && w->spans->items[i].left_out) {
		begin_work(w, i);
		w->worked = true;
	}
}

static void by_profiler(struct walk *w, size_t i)
{
	const struct span *s = w->spans->items;

	if (s[i].profiler && (!i || s[i].profiler != s[i - 1].profiler))
		new_step(w, i);
	current(w)->ended = true;
}

static void by_backward(struct walk *w, size_t i)
{
	enum phase phase = w->spans->items[i].phase;

	if (phase == PHASE_FORWARD && (w->steps->count == 1 || w->backward)) {
		new_step(w, i);
		w->backward = false;
	} else if (phase == PHASE_BACKWARD) {
		begin_work(w, i);
		w->backward = current(w)->ended = true;
	}
}

static void by_forward(struct walk *w, size_t i)
{
	if (w->spans->items[i].phase != PHASE_FORWARD)
		return;
	new_step(w, i);
	current(w)->ended = true;
}

struct step_phase steps_phase(const struct spans *s, const struct step *step, enum phase phase)
{
	struct step_phase out = { 0 };
	bool each = phase == PHASE_OPTIMIZER || phase == PHASE_BACKWARD;

	for (size_t i = step->first; i <= step->last && i < s->count; i++) {
		const struct span *span = &s->items[i];

		if (span->phase != phase)
			continue;
		if (out.times)
			extent_join(&out.extent, &span->extent);
		else
			out.extent = span->extent;
		if (each || i == step->first || span[-1].phase != phase)
			out.times++;
	}
	return out;
}

static void sum_up_step(struct steps *steps, const struct spans *s, size_t n)
{
	struct step *step = &steps->items[n];

	step->last = (n + 1 < steps->count ? steps->items[n + 1].first : s->count) - 1;
	for (size_t i = step->first; i <= step->last && i < s->count; i++) {
		const struct span *span = &s->items[i];

		if (i == step->first || span->extent.peak > step->extent.peak)
			step->peak_phase = span->phase;
		if (i == step->first)
			step->extent = span->extent;
		else
			extent_join(&step->extent, &span->extent);
		step->phases |= (uint8_t)(1u << span->phase);
	}
}

/* True if only forward passes follow the last step until the program's end: an evaluation, even if
 * autograd saved something, and not a step that was interrupted. */
static bool is_after(struct walk *w)
{
	const struct step *last = current(w);
	bool trains = w->steps->basis == STEPS_OPTIMIZER || w->steps->basis == STEPS_BACKWARD;

	if (!trains || !w->spans->ended || last->ended)
		return false;
	if (w->steps->count < 3) /* no step before it */
		return false;
	for (size_t i = last->first; i < w->spans->count; i++) {
		const struct span *span = &w->spans->items[i];

		if (span->phase == PHASE_BACKWARD || span->refused || span->left_out)
			return false;
	}
	return true;
}

/* Cuts off the work after the last step, most often the program's end. If memory ran out in it, it
 * belongs to the step: it is for a loss outside of modules, or on an evaluation's results. After an
 * optimizer's step it begins the next step: it makes the batch. */
static void cut_tail(struct walk *w)
{
	const struct span *spans = w->spans->items;
	size_t at = w->spans->count;
	bool refused = false;

	w->steps->tail = is_after(w);
	while (at && spans[at - 1].phase == PHASE_OTHER)
		refused |= spans[--at].refused;
	if (refused && w->steps->count > 1) {
		w->steps->tail = false;
		if (w->steps->basis == STEPS_OPTIMIZER && current(w)->ended && !w->worked &&
		    spans[at - 1].phase != PHASE_EVALUATION)
			new_step(w, w->open);
		return;
	}
	if (w->steps->tail || w->steps->count == 1 || at == w->spans->count ||
	    (w->steps->basis == STEPS_OPTIMIZER && spans[at - 1].phase == PHASE_BACKWARD))
		return;
	if (current(w)->first < at)
		new_step(w, at);
	w->steps->tail = true;
}

/* True if passes might be missing: only frames show the calls of the model, and some blocks have no
 * stack. */
static bool may_be_more(enum steps_basis basis, const struct spans *s)
{
	bool by_frames = basis == STEPS_FORWARD || (basis == STEPS_BACKWARD && !s->tags);

	for (size_t i = 0; i < s->count && s->python && by_frames; i++)
		if (s->items[i].blind)
			return true;
	return false;
}

static void group(struct steps *out, const struct spans *s, struct stacks *stacks)
{
	static void (*const meet[])(struct walk *, size_t) = {
		[STEPS_PROFILER] = by_profiler,
		[STEPS_OPTIMIZER] = by_optimizer,
		[STEPS_BACKWARD] = by_backward,
		[STEPS_FORWARD] = by_forward,
	};
	struct walk w = { .steps = out, .spans = s };

	optimizers_find(&w.optimizers, s, stacks);
	*out = (struct steps){ .basis = basis_of(s) };
	new_step(&w, 0);
	for (size_t i = 0; i < s->count && meet[out->basis]; i++)
		meet[out->basis](&w, i);
	if (out->basis == STEPS_OPTIMIZER && w.worked && current(&w)->ended && !w.hooked)
		new_step(&w, w.open);
	cut_tail(&w);
	out->at_least = may_be_more(out->basis, s);
	for (size_t i = 0; s->count && i < out->count; i++)
		sum_up_step(out, s, i);
	optimizers_free(&w.optimizers);
}

static bool is_without_gradients(const struct span *span)
{
	return span->phase == PHASE_FORWARD && !span->kept;
}

static bool has_without_gradients(const struct step *step, const struct spans *s)
{
	for (size_t i = step->first; i <= step->last; i++)
		if (is_without_gradients(&s->items[i]))
			return true;
	return false;
}

/* True if a whole step has no forward passes without gradients. */
static bool trains_without(const struct steps *steps, const struct spans *s)
{
	for (size_t i = 1; i < steps->count; i++) {
		const struct step *step = &steps->items[i];

		if (step->ended && step_has(step, PHASE_FORWARD) &&
		    step_has(step, PHASE_BACKWARD) && !has_without_gradients(step, s))
			return true;
	}
	return false;
}

/* Memory ran out in it before a pass that begins alike has saved something. */
static bool may_have_gradients(const struct spans *s, struct stacks *stacks, const struct span *x)
{
	uint32_t place = x->refused && x->stack ? optimizers_caller(stacks, x->stack) : 0;

	return place &&
	       ANY_OF(y, s->items, s->count,
		      y->phase == PHASE_FORWARD && y->kept && y->stack && y->blocks > x->blocks &&
			      optimizers_caller(stacks, y->stack) == place);
}

static bool name_evaluations(struct spans *s, const struct steps *steps, struct stacks *stacks)
{
	bool any = false;

	if (!s->tags || !trains_without(steps, s))
		return false;
	for (size_t i = 0; i < s->count; i++) {
		if (!is_without_gradients(&s->items[i]) ||
		    may_have_gradients(s, stacks, &s->items[i]))
			continue;
		s->items[i].phase = PHASE_EVALUATION;
		any = true;
	}
	return any;
}

void steps_find_plain(struct steps *out, struct spans *s, struct stacks *stacks)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].phase == PHASE_EVALUATION)
			s->items[i].phase = PHASE_FORWARD;
	group(out, s, stacks);
}

bool steps_evaluate(const struct steps *steps)
{
	return ANY_OF(x, steps->items, steps->count, step_has(x, PHASE_EVALUATION));
}

void steps_find(struct steps *out, struct spans *s, struct stacks *stacks)
{
	steps_find_plain(out, s, stacks);
	if (!name_evaluations(s, out, stacks))
		return;
	steps_free(out);
	group(out, s, stacks);
}

size_t steps_number(const struct steps *steps)
{
	return steps->count - 1 - steps->tail;
}

void steps_free(struct steps *steps)
{
	free(steps->items);
}

size_t steps_at(const struct steps *steps, uint64_t seq)
{
	if (steps->count < 2)
		return 0;
	return extents_begun(&steps->items[1].extent, sizeof(*steps->items), steps->count - 1, seq);
}

const struct span *steps_span(const struct steps *steps, const struct spans *s, uint64_t seq)
{
	const struct step *step = &steps->items[steps_at(steps, seq)];
	const struct span *best = NULL;

	for (size_t i = step->first; i <= step->last && i < s->count; i++)
		if (s->items[i].extent.first_seq <= seq && (!best || best->extent.peak_seq != seq))
			best = &s->items[i];
	return best;
}
