/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen modules that keep a graph because a result that they receive was made to require a
 * gradient (by a hook meant for other modules). Blocks saved before any weight, or any tensor
 * that the program made itself, is used as a leaf are saved for such results alone. Only
 * events before the first backward pass are read, because leaves of a graph that is kept are
 * not recorded again. Whether the program wants the gradient of such a result is not known.
 * Inside checkpointing and other Functions leaves are not recorded.
 */

#include "../base/sorted.h"
#include "advise.h"

enum { FOR_NOTHING = 1, FOR_WEIGHTS = 2 };

struct search {
	struct advise *advise;
	uint64_t from, until; /* time (ns) of the first such result, and of the first other leaf */
	uint64_t backward;    /* time (ns) of the first block of a backward pass */
	struct map stacks;    /* stack -> FOR_NOTHING, FOR_WEIGHTS */
	struct map ends;      /* pass -> its last life of stacks that are FOR_NOTHING */
	struct owner owner;   /* line of the largest such result */
	uint64_t largest;
	bool frozen; /* weights that are not leaves are saved */
};

/* A block made before the first backward pass. */
struct early {
	struct lived life;
	struct life_facts facts;
	uint64_t ns;
	bool weight, result;
	uint32_t signs;
};

static bool early_read(const struct advise *a, uint32_t i, struct early *e)
{
	if (i >= a->lives->rows.count)
		return false;
	e->life = lives_read(a->lives, i);
	if (e->life.born->backwards || e->life.from > a->until)
		return false;
	e->facts = lives_facts(a->lives, e->life.row);
	e->ns = lives_ns(a->lives, &e->life.row->born);
	e->signs = model_signs(&a->timeline->model, e->life.stack);
	e->weight = e->signs & STACK_PARAM;
	e->result = e->life.born->stage == STAGE_FORWARD && !e->weight &&
		    e->life.born->layer == LIFE_BLOCK;
	return true;
}

/* A distributed tensor's leaf has no memory of its own and is not recorded. */
static bool is_distributed(const struct advise *a, uint32_t stack)
{
	return stacks_in_file(&a->timeline->stacks, stack, ONE_OF("/torch/distributed/"));
}

/* A weight is first trained after the first backward pass. It might belong before such modules. */
static bool is_trained_later(const struct search *s)
{
	const struct advise *a = s->advise;

	ADVISE_EACH (a, CLASS_BIT(parameters), l)
		if (!l.wanted &&
		    lives_facts(a->lives, lives_at(a->lives, l.life)).leaf_ns > s->backward)
			return true;
	return false;
}

static void find_leaves(struct search *s)
{
	const struct lives *l = s->advise->lives;
	struct early e;
	uint32_t i;

	s->from = s->until = UINT64_MAX;
	for (i = 0; early_read(s->advise, i, &e); i++) {
		uint64_t *first = e.result ? &s->from : &s->until;

		if (!e.facts.leaf_ns || !(e.facts.tags & BLOCK_LEAF))
			continue;
		*first = e.facts.leaf_ns < *first ? e.facts.leaf_ns : *first;
		if (!e.result || e.facts.leaf_ns > s->until || e.life.size <= s->largest)
			continue;
		s->largest = e.life.size;
		s->owner = owners_find(&s->advise->timeline->owners,
				       &(struct block){ .stack = e.life.stack });
	}
	s->backward = i < l->rows.count ? lives_ns(l, &lives_at(l, i)->born) : UINT64_MAX;
}

/* False: the recording does not show whether the graphs are needed. */
static bool find_stacks(struct search *s)
{
	struct early e;

	for (uint32_t i = 0; early_read(s->advise, i, &e); i++) {
		bool nothing = e.facts.save_ns >= s->from && e.facts.save_ns < s->until;

		if (!e.facts.save_ns || (!nothing && e.weight))
			continue;
		if (nothing &&
		    (e.facts.tags & BLOCK_PACKED ||
		     e.signs & (STACK_FUNCTION | STACK_RECOMPUTE | STACK_UNSHARDED) ||
		     (e.weight && (e.facts.leaf_ns || is_distributed(s->advise, e.life.stack)))))
			return false;
		if (nothing && e.weight)
			s->frozen = true;
		if (e.result && (nothing || e.ns > s->until))
			*map_put(&s->stacks, e.life.stack, NULL) |=
				nothing ? FOR_NOTHING : FOR_WEIGHTS;
	}
	return s->frozen;
}

static bool is_for_nothing(const struct search *s, const struct advised *l)
{
	const uint32_t *of = map_get(&s->stacks, l->stack);

	return of && *of == FOR_NOTHING && l->born->stage == STAGE_FORWARD;
}

/* Saved within the frozen modules. Later modules save some of their results, too, and keep those.
 * most: one more operator might belong to the frozen modules. */
static bool is_saved_inside(const struct search *s, const struct advised *l, bool most)
{
	const struct advise *a = s->advise;
	const uint32_t *end = map_get(&s->ends, l->born->forwards);

	return end && *end + most < a->lives->rows.count && l->course->saved &&
	       l->course->saved <= lives_read(a->lives, *end + most).from;
}

/* A temporary of a backward pass that goes on after the last weight of the step got its gradient,
 * so it goes back into the frozen modules. */
static bool goes_back(const struct advise *a, const struct advised *l)
{
	const struct row_store *all = &a->lives->arrivals;
	uint64_t next = advise_next(a, l->from, PHASE_OPTIMIZER);
	const struct lives_arrival *x;
	uint32_t n;

	if (l->until >= next || next > a->until)
		return false;
	n = (uint32_t)SORTED_FIRST(all->count, i,
				   (x = rows_at(all, (uint32_t)i), x->seq <= l->until));
	for (; n < all->count && (x = rows_at(all, n), x->seq < next); n++)
		if (!x->leaf || lives_read(a->lives, x->leaf - 1).born->stage != STAGE_FORWARD)
			return false;
	return true;
}

static void without_backward(struct advise *a, struct life_plan *p)
{
	ADVISE_EACH (a, CLASS_BIT(backward_temporaries), l)
		if (l.born->stage == STAGE_BACKWARD && goes_back(a, &l))
			plan_without(p, l.life, l.from, l.until, l.size);
}

static void add_frozen(struct search *s)
{
	struct advise *a = s->advise;
	struct finding *f = advise_add(a, "frozen_graph");

	f->range = true;
	f->owner = s->owner;
	ADVISE_EACH (a, CLASS_BIT(activations), l) {
		if (!is_for_nothing(s, &l) || !is_saved_inside(s, &l, true))
			continue;
		advise_without(a, f, &l, l.course->saved + 1);
		if (is_saved_inside(s, &l, false))
			plan_without(&f->cautious, l.life, layers_after_next(a, l.from), l.until,
				     l.size);
	}
	if (f->bytes)
		without_backward(a, &f->plan);
}

void advise_frozen_graph(struct advise *a)
{
	struct search s = { .advise = a };
	bool trains;

	find_leaves(&s);
	/* If nothing is trained, the program wants the gradient of such a result. */
	trains = s.until != UINT64_MAX || !a->timeline->model.spans.backwards;
	if (trains && s.from < s.until && find_stacks(&s) && !is_trained_later(&s)) {
		ADVISE_EACH (a, UINT16_MAX, l)
			if (is_for_nothing(&s, &l))
				*map_put(&s.ends, l.born->forwards, NULL) = l.life;
		add_frozen(&s);
	}
	map_free(&s.stacks);
	map_free(&s.ends);
}
