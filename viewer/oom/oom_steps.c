/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The earliest step whose blocks might still be needed when memory ran out. An optimizer ends a
 * step. Before the first optimizer call all passes might belong to one update that is still to
 * come: micro-batches, several networks, a rollout. So blocks of an earlier step are called
 * old only if there is evidence that the step was over. The printed step number is that of all
 * commands (model/steps.h) and does not depend on this.
 */
#include "oom.h"

static bool is_gradient(const struct block *b)
{
	return b->category == CATEGORY_gradients;
}

/* Birth of the earliest live block of that kind; UINT64_MAX = there is none. */
static uint64_t first_birth(const struct oom *o, bool (*is_one)(const struct block *b))
{
	uint64_t first = UINT64_MAX;

	FOR_BLOCKS (b, &o->shot.moment)
		if (is_one(b) && b->seq < first)
			first = b->seq;
	return first;
}

/* torch.autograd.grad accumulates nothing: the step is over after it unless its graph is alive. */
static bool is_asked(const struct oom *o, const struct step *step)
{
	const struct span *spans = &o->timeline->model.spans.items[step->first];
	size_t n = step_spans(&o->timeline->model.spans, step);

	return ANY_OF(x, spans, n, x->phase == PHASE_BACKWARD) &&
	       !ANY_OF(x, spans, n, x->phase == PHASE_BACKWARD && !x->asked) &&
	       first_birth(o, oom_is_in_graph) > step->extent.last_seq;
}

/* For steps that end with a backward pass: a step is over if gradients arrived in it and none of
 * them is alive. */
static size_t by_gradients(const struct oom *o, size_t step)
{
	const struct timeline *t = o->timeline;
	size_t first = steps_at(&t->steps, first_birth(o, is_gradient));

	step = first && first < step ? first : step;
	for (; step > 1; step--) {
		const struct step *before = &t->steps.items[step - 1];

		if (is_asked(o, before) ||
		    ANY_OF(x, &t->model.spans.items[before->first],
			   step_spans(&t->model.spans, before), x->gradients))
			break;
	}
	return step;
}

size_t oom_batch_span(const struct oom *o, size_t step)
{
	const struct spans *s = &o->timeline->model.spans;
	const struct steps *steps = &o->timeline->steps;
	size_t at = steps->items[step].first;

	while (steps->basis != STEPS_FORWARD && at &&
	       (s->items[at - 1].phase == PHASE_OTHER || s->items[at - 1].phase == PHASE_ZERO_GRAD))
		at--;
	return at;
}

uint64_t oom_batch_begin(const struct oom *o, size_t step)
{
	const struct spans *s = &o->timeline->model.spans;
	size_t at = oom_batch_span(o, step);

	return at < s->count ? s->items[at].extent.first_seq : 0;
}

/* A step has begun once its batch is made. Blocks that the script makes from the last results,
 * after the optimizer, belong to the step before. */
static bool has_begun(const struct oom *o, size_t step)
{
	const struct spans *s = &o->timeline->model.spans;
	uint64_t begin = oom_batch_begin(o, step);

	for (size_t i = o->timeline->steps.items[step].first; i < s->count; i++)
		if (s->items[i].extent.first_seq <= o->refusal.event.seq &&
		    (s->items[i].left_out ||
		     (s->items[i].phase != PHASE_OTHER && s->items[i].phase != PHASE_ZERO_GRAD)))
			return true;
	FOR_BLOCKS (b, &o->shot.moment)
		if (b->category == CATEGORY_inputs && b->seq >= begin)
			return true;
	return o->wanted.category == CATEGORY_inputs;
}

bool oom_by_call(const struct oom *o)
{
	const struct timeline *t = o->timeline;

	return t->steps.basis == STEPS_FORWARD && t->model.spans.tags && o->at_step > 1 &&
	       o->at_step <= steps_number(&t->steps) && !oom_has_graphs(o);
}

size_t oom_since_step(const struct oom *o)
{
	const struct timeline *t = o->timeline;
	size_t step = t->steps.count > 1 ? o->at_step : 0;

	if (step > 1 && t->steps.basis == STEPS_BACKWARD)
		return by_gradients(o, step);
	/* One backward pass and one update might follow for all calls of the model. */
	if (step > 1 && t->steps.basis == STEPS_FORWARD)
		return 1;
	if (step > 1 && t->steps.basis == STEPS_OPTIMIZER && !has_begun(o, step))
		return step - 1;
	return step;
}
