/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients that stay while the next forward pass runs: set to zero, not given back. With
 * set_to_none=True each is gone from zero_grad on, until its next gradient arrives: the event after
 * which the block that brought it is gone (it becomes the gradient itself then).
 */

#include "../base/sorted.h"
#include "advise.h"

struct held {
	uint64_t size, until;
	uint64_t gone; /* event since which it would not be there, 0 = it is */
	uint32_t life;
	bool added; /* in a later step another gradient came to it: an optimizer's, set to zero */
};

struct search {
	struct advise *advise;
	struct life_plan *plan;
	struct held *items;
	size_t count, room, step; /* step: the latest whose beginning was seen */
};

/* From zero_grad, or where none was seen from the end of the step before. */
static uint64_t cleared_at(const struct spans *s, const struct step *step,
			   const struct step *before)
{
	struct step_phase clear = steps_phase(s, step, PHASE_ZERO_GRAD);
	struct step_phase forward = steps_phase(s, step, PHASE_FORWARD);

	return clear.times && clear.extent.first_seq < forward.extent.first_seq
		       ? clear.extent.first_seq
		       : before->extent.last_seq;
}

static void begin_steps(struct search *s, uint64_t seq)
{
	const struct steps *steps = &s->advise->timeline->steps;

	for (; s->step + 1 < steps->count; s->step++) {
		const struct step *next = &steps->items[s->step + 1];
		uint64_t gone = cleared_at(&s->advise->timeline->model.spans, next, next - 1);

		if (next->extent.first_seq > seq)
			break;
		for (size_t i = 0; i < s->count && s->step; i++) {
			const struct life *row = lives_at(s->advise->lives, s->items[i].life);

			if (lives_seq(s->advise->lives, &row->born) < gone && !s->items[i].gone)
				s->items[i].gone = gone;
		}
	}
}

static void clear(struct search *s, struct held *h, uint64_t until)
{
	if (h->gone) {
		plan_without(s->plan, h->gone, until, h->size);
		s->advise->shortened[h->life] = true;
	}
	h->added |= h->gone != 0;
	h->gone = 0;
}

COMPARE(by_life, struct held, ORDER(x->life, y->life))

/* Without tags no arrival is known: all may come as soon as a backward pass begins. */
static void arrive_together(struct search *s)
{
	const struct spans *spans = &s->advise->timeline->model.spans;

	FOR_EACH (const struct span, at, spans->items, spans->count) {
		if (at->phase != PHASE_BACKWARD || at->extent.first_seq > s->advise->until)
			continue;
		begin_steps(s, at->extent.first_seq);
		FOR_EACH (struct held, h, s->items, s->count)
			clear(s, h, at->extent.first_seq);
	}
}

/* Items are in the order of their births. */
static void arrive(struct search *s)
{
	const struct row_store *arrivals = &s->advise->lives->arrivals;

	for (uint32_t i = 0; i < arrivals->count; i++) {
		const struct lives_arrival *a = rows_at(arrivals, i);
		struct held *h;

		if (a->seq > s->advise->until)
			break;
		begin_steps(s, a->seq);
		h = bsearch(&(struct held){ .life = a->life }, s->items, s->count,
			    sizeof(*s->items), by_life);
		if (h)
			clear(s, h, a->seq);
	}
}

/* A copy of the script's own is no gradient; what a CUDA graph writes to has to stay. */
static bool can_go(const struct advise *a, const struct advised *l)
{
	struct life_facts facts;

	if (l->life >= a->lives->rows.count)
		return true;
	facts = lives_facts(a->lives, lives_at(a->lives, l->life));
	return !facts.pool && (!a->timeline->model.spans.tags || facts.tags & BLOCK_GRAD);
}

/* It saw the forward pass of a step that it was not born in. */
static bool is_held(const struct advise *a, const struct advised *l)
{
	const struct steps *s = &a->timeline->steps;
	size_t step = steps_at(s, l->from);
	struct step_phase forward;

	if (l->from >= a->peak_seq || step + 1 >= s->count || !advise_knows_steps(a) ||
	    !can_go(a, l))
		return false;
	forward = steps_phase(&a->timeline->model.spans, &s->items[step + 1], PHASE_FORWARD);
	return forward.times && l->until > forward.extent.last_seq;
}

/* Given up between two steps: the optimizer's zero_grad() gives up its own. */
static bool is_freed(const struct advise *a, const struct advised *l)
{
	return a->timeline->model.spans.tags && l->until != PLAN_END &&
	       advise_next(a, l->from, PHASE_OPTIMIZER) < l->until &&
	       advise_next(a, l->until, PHASE_BACKWARD) != PLAN_END;
}

void advise_set_to_none(struct advise *a)
{
	struct search s = { .advise = a };
	uint64_t bytes = 0;
	bool freed = false;
	struct finding *f;

	ADVISE_EACH (a, CLASS_BIT(gradients), l) {
		freed |= is_freed(a, &l) && !is_held(a, &l);
		if (!is_held(a, &l))
			continue;
		*need_item(s.items, s.count, s.room) =
			(struct held){ .size = l.size, .until = l.until, .life = l.life };
	}
	if (s.count) {
		f = advise_add(a, "set_to_none");
		s.plan = &f->plan;
		if (a->timeline->model.spans.tags)
			arrive(&s);
		else
			arrive_together(&s);
		begin_steps(&s, a->until);
		for (size_t i = 0; i < s.count; i++)
			if (a->open || s.items[i].added) {
				bytes += s.items[i].size;
				clear(&s, &s.items[i], s.items[i].until);
			}
		advise_put(f->what,
			   freed ? "Free the gradients that the optimizer's zero_grad() leaves, or "
				   "make none: set requires_grad_(False) on weights that no "
				   "optimizer updates, and run frozen modules under no_grad()"
				 : "Free the gradients before the forward pass: "
				   "zero_grad(set_to_none=True), unless they are accumulated");
		advise_put(f->how,
			   "%s of gradients lived through the forward passes of later steps%s",
			   B(bytes), freed ? ", where others were freed in each step" : "");
	}
	free(s.items);
}
