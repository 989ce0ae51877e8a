/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there for a whole phase and not used in it: weights that no graph ever took, while the
 * trained ones go backward and are updated (a reference, a teacher, an average of the weights), and
 * gradients while an evaluation runs. A recording does not show reads: these are uses that the
 * phase rules out.
 */
#include "advise.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

/* A graph that is trained asks its leaves for gradients and takes its weights. */
static bool is_trained(const struct advise *a, const struct advised *l)
{
	const struct tensors *t = &a->timeline->model.tensors;
	uint64_t addr;

	if (l->life >= a->lives->rows.count || a->saved[l->life])
		return true;
	addr = lives_at(a->lives, l->life)->addr;
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].leaf && t->items[i].addr - addr < l->size &&
		    t->items[i].device == a->timeline->device)
			return true;
	return false;
}

/* From the beginning of a backward pass to the end of the optimizer's step after it. */
static bool is_update(const struct span *x)
{
	return x->phase == PHASE_BACKWARD || x->phase == PHASE_OPTIMIZER;
}

static uint64_t next_pass(const struct advise *a, uint64_t seq)
{
	uint64_t forward = advise_next(a, seq, PHASE_FORWARD);
	uint64_t evaluation = advise_next(a, seq, PHASE_EVALUATION);

	return forward < evaluation ? forward : evaluation;
}

/* Gone in updates; to_pass: and from there to the pass that comes next, as what comes between
 * (gradients are let go, an average is updated) may use them or not. */
static void without_in_updates(struct advise *a, struct life_plan *p, const struct advised *l,
			       bool to_pass)
{
	const struct spans *s = &a->timeline->model.spans;
	uint64_t done = l->from; /* gone up to there */

	for (const struct span *x = s->items; x < s->items + s->count; x++) {
		uint64_t from = x->extent.first_seq, until = x->extent.last_seq + 1;

		if (!is_update(x))
			continue;
		until = to_pass ? next_pass(a, until - 1) : until;
		from = from > done ? from : done;
		until = until < l->until ? until : l->until;
		if (until <= from)
			continue;
		plan_without(p, from, until, l->size, a->peak_seq);
		done = until;
	}
}

void advise_idle_weights(struct advise *a)
{
	struct finding *f = advise_add(a, "idle_weights");
	uint64_t bytes = 0, blocks = 0, largest = 0;
	struct advised l;
	struct block b;

	f->range = true;

	ADVISE_EACH(a, CLASS_BIT(parameters), l)
	{
		if (!advise_counts(a, &l) || is_trained(a, &l))
			continue;
		without_in_updates(a, &f->plan, &l, true);
		without_in_updates(a, &f->cautious, &l, false);
		bytes += l.size;
		blocks++;
		if (l.size <= largest)
			continue;
		largest = l.size;
		advise_block(a, &l, &b);
		f->owner = owners_find(&a->timeline->owners, &b);
	}
	advise_put(f->what,
		   "Move the weights that no graph takes (a reference or teacher model, an "
		   "average) to the host before backward, and back for their next pass");
	advise_put(f->how,
		   "%s of weights in %llu blocks %s that get no gradient and that autograd never "
		   "saved; copied to the device once a step; at least if they have to be back at "
		   "the end of the optimizer's step, at most if only for the next forward pass",
		   B(bytes), (unsigned long long)blocks, a->when);
}

/* The gradient's next use is the backward pass after the evaluation. */
static uint64_t without_in_evaluations(struct advise *a, struct life_plan *p,
				       const struct advised *l)
{
	uint64_t begin = advise_next(a, l->from, PHASE_OPTIMIZER), until, bytes = 0;

	for (; begin < l->until; begin = until) {
		begin = advise_next(a, begin, PHASE_EVALUATION);
		if (begin >= l->until)
			break;
		until = advise_next(a, begin, PHASE_BACKWARD);
		until = until < l->until ? until : l->until;
		plan_without(p, begin, until, l->size, a->peak_seq);
		if (begin <= a->peak_seq && a->peak_seq < until)
			bytes = l->size;
	}
	return bytes;
}

void advise_idle_gradients(struct advise *a)
{
	struct finding *f;
	uint64_t bytes = 0;
	struct advised l;

	if (!advise_in(a, a->peak_seq, PHASE_EVALUATION))
		return;
	f = advise_add(a, "idle_gradients");
	ADVISE_EACH(a, CLASS_BIT(gradients), l)
	{
		bytes += without_in_evaluations(a, &f->plan, &l);
	}
	advise_put(f->what,
		   "Call optimizer.zero_grad() right after the optimizer's step, before an "
		   "evaluation begins: no gradient is used in it");
	advise_put(f->how, "%s of gradients %s, which is in an evaluation", B(bytes), a->when);
}
