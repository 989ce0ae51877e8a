/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that live longer than anything that is known to use them: from step to step for good
 * (kept), into the next step (overlap), past the last graph that held them (late). Where uses are
 * recorded a life ends at its last one; else a result that the program itself reads later cannot be
 * let go of, and nothing shows it.
 */

#include "../answers/leaks.h"
#include "advise.h"

static bool is_of_a_pass(const struct advise *a, const struct advised *l)
{
	return !(l->classes & CLASSES_THAT(STAY)) &&
	       !(model_signs(&a->timeline->model, l->stack) & STACK_CAPTURE) &&
	       steps_at(&a->timeline->steps, l->from) >= 1 &&
	       (l->born->stage == STAGE_FORWARD || a->saved[l->life] ||
		l->classes & CLASS_BIT(forward_temporaries));
}

static bool is_leak(const struct leaks *leaks, struct advise *a, const struct advised *l)
{
	struct owner owner = advise_owner(a, l);

	return leaks_at(leaks, l->classes, &owner);
}

/* Weights that are not trained: copies of some, or of another model. */
static bool is_copy(const struct advise *a, const struct advised *l)
{
	return (l->classes & CLASSES_THAT(STAY)) == CLASS_BIT(parameters) &&
	       a->timeline->model.spans.tags && !advise_leaf(a, l) && !a->saved[l->life];
}

/* Of a refusal it is known by what was there then, see oom/. */
void advise_kept(struct advise *a)
{
	const struct steps *s = &a->timeline->steps;
	struct line_plans lines = { 0 };
	struct finding *f;
	struct leaks leaks;

	if (a->wanted_count)
		return;
	leaks_find(&leaks, a->timeline);
	if (leaks.count) {
		/* Of what stays only weights are copied step by step, see is_copy. */
		ADVISE_EACH (a, ~CLASSES_THAT(STAY) | CLASS_BIT(parameters), l) {
			size_t step = steps_at(s, l.from);

			if ((l.classes & CLASSES_THAT(STAY) && !is_copy(a, &l)) || step < 1 ||
			    step + 1 >= s->count || l.until <= s->items[step + 1].extent.last_seq ||
			    !is_leak(&leaks, a, &l))
				continue;
			lines_without(&lines, a, &l,
				      is_copy(a, &l) ? l.from : s->items[step].extent.last_seq);
		}
	}
	f = lines_add_all(&lines, a, "kept");
	advise_put(f->how,
		   "%s in %s of earlier steps at the peak, allocated by a line that holds "
		   "more with each step",
		   B(f->bytes), MANY(f->blocks, "block"));
	leaks_free(&leaks);
}

/* By a graph of the step after it: made, or gone through (where the rest is not known it may be yet
 * to go through); or made ahead for it, perhaps. */
static bool is_used_later(const struct advise *a, const struct advised *l, uint64_t end)
{
	uint64_t released = a->released[l->life];

	if (a->open && a->saved[l->life] > released)
		return true;
	return a->saved[l->life] > end ||
	       (released > end && advise_in(a, released, PHASE_BACKWARD)) ||
	       stage_is_backward(l->died->stage) ||
	       (l->classes & CLASS_BIT(inputs) && !a->saved[l->life]);
}

/* Backward has yet to go through the graph of its pass, and may begin at it. */
static bool is_awaited(const struct advise *a, const struct advised *l, uint64_t end)
{
	const struct advise_pass *x = &a->passes.items[l->born->forwards];

	return x->walked > end || (a->open && x->kept && !x->walked);
}

/* It lived through no more forward passes than a step has. */
static bool is_one_turn(const struct advise *a, const struct advised *l)
{
	size_t steps = steps_number(&a->timeline->steps);
	uint32_t all = a->timeline->model.spans.forwards;
	uint32_t passes = steps && all > steps ? (uint32_t)(all / steps) : 1;

	if (a->wanted_count)
		all = a->wanted->born->forwards;
	return (l->until == PLAN_END ? all : l->died->forwards) <= l->born->forwards + passes;
}

/* What became of a stack's blocks in the steps after their own. */
enum { NEEDED = 1, NOT_NEEDED = 2, KEPT = 4 };

static void note_later(const struct advise *a, struct map *stacks)
{
	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		uint64_t end = advise_next_pass(a, &l);

		if (!is_of_a_pass(a, &l) || l.until <= end)
			continue;
		if (!is_one_turn(a, &l))
			*map_put(stacks, l.stack, NULL) |= KEPT;
		if (is_used_later(a, &l, end))
			*map_put(stacks, l.stack, NULL) |= NEEDED;
		else if (l.until != PLAN_END)
			*map_put(stacks, l.stack, NULL) |= NOT_NEEDED;
	}
}

/* Where a stack's blocks are kept for good, the latest is too. */
static bool is_kept(const struct map *stacks, const struct advised *l)
{
	const uint32_t *later = map_get(stacks, l->stack);

	return later && *later & KEPT;
}

/* The rest of a block's life is not known at a refusal: it is of an earlier step, and no graph took
 * those before it at its place. */
static bool is_over(const struct advise *a, const struct map *stacks, const struct advised *l)
{
	const struct steps *s = &a->timeline->steps;
	const uint32_t *later = map_get(stacks, l->stack);

	if (!a->open || (l->until != PLAN_END && !a->wanted_count))
		return !is_kept(stacks, l);
	return advise_knows_steps(a) && later && *later == NOT_NEEDED &&
	       steps_at(s, l->from) < steps_at(s, a->until);
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* From one forward pass into the next, and no longer than a turn of the loop. */
void advise_overlap(struct advise *a)
{
	const struct steps *steps = &a->timeline->steps;
	struct map stacks = { 0 };
	struct line_plans lines = { 0 };
	bool of_step = false; /* some of it was made in the step of the peak */
	const char *turn;
	struct finding *f;

	note_later(a, &stacks);
	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		uint64_t end = advise_next_pass(a, &l);

		if (!map_get(&a->sums, l.stack) && is_of_a_pass(a, &l) && l.until > end &&
		    !is_used_later(a, &l, end) && !is_awaited(a, &l, end) && is_one_turn(a, &l) &&
		    is_over(a, &stacks, &l)) {
			end = later_of(end, advise_used_until(a, &l));
			lines_without(&lines, a, &l, end);
			of_step |= end <= a->peak_seq && advise_counts(a, &l) &&
				   steps_at(steps, l.from) == steps_at(steps, a->peak_seq);
		}
	}
	turn = of_step ? "pass" : "step";
	map_free(&stacks);
	f = lines_add_all(&lines, a, "overlap");
	advise_put(f->what,
		   "At the end of each %s delete the variables that hold the results of %s%s: "
		   "they are still there while the next %s runs",
		   turn, ADVISE_LINE(f), f->range ? " and of others" : "", turn);
	advise_put(f->how,
		   "%s in %s of %s before %s. No graph of the later "
		   "%s saved them",
		   B(f->bytes), MANY(f->blocks, "block"), of_step ? "passes" : "the step", a->when,
		   turn);
}

/* Since when no graph needs it; PLAN_END = one does to the end: the latest that saved it has not
 * let it go. */
static uint64_t last_use(const struct advise *a, const struct advised *l)
{
	if (a->released[l->life] > a->saved[l->life])
		return a->released[l->life];
	return a->saved[l->life] ? PLAN_END : advise_next(a, l->from, PHASE_BACKWARD);
}

/* Saved in or behind the first backward pass since it was made: its step has several graphs. */
static bool is_taken_again(const struct advise *a, const struct advised *l)
{
	return a->saved[l->life] && a->saved[l->life] >= advise_next(a, l->from, PHASE_BACKWARD);
}

/* Backward made a graph: another pass goes through it, and what comes before is not known. */
static bool has_graph_of_backward(const struct advise *a)
{
	ADVISE_EACH (a, UINT16_MAX, l)
		if (l.born->stage == STAGE_BACKWARD && l.until == PLAN_END &&
		    advise_in_graph(a, &l))
			return true;
	return false;
}

/* At a refusal the rest of a block's life is not known. Outside of modules and behind its pass the
 * script reads results; a further graph of the step may take them. */
static bool may_be_used(const struct advise *a, const struct advised *l, const struct map *again,
			bool graph)
{
	if (l->until != PLAN_END)
		return false;
	if (a->wanted_count && a->wanted->born->stage == STAGE_OUTSIDE &&
	    a->wanted->born->forwards == l->born->forwards)
		return true;
	if (is_taken_again(a, l))
		return false;
	return map_get(again, l->stack) || (graph && !a->saved[l->life]);
}

void advise_late(struct advise *a)
{
	bool graph = a->open && a->steps <= 1 && has_graph_of_backward(a);
	struct map again = { 0 }, stacks = { 0 };
	struct line_plans lines = { 0 };
	struct finding *f;

	if (!a->open)
		note_later(a, &stacks);
	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) /* what a further graph of its step took */
		if (a->open && is_taken_again(a, &l))
			map_put(&again, l.stack, NULL);
	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		uint64_t use;

		if (l.born->stage != STAGE_FORWARD || !is_of_a_pass(a, &l))
			continue;
		use = later_of(last_use(a, &l), advise_used_until(a, &l));
		if (use < l.until && is_one_turn(a, &l) && !is_kept(&stacks, &l) &&
		    !(a->open && may_be_used(a, &l, &again, graph)))
			lines_without(&lines, a, &l, use);
	}
	map_free(&again);
	map_free(&stacks);
	f = lines_add_all(&lines, a, "late_del");
	advise_put(f->what,
		   "Delete the variables that hold the results of %s%s before backward, or as "
		   "soon as they have been read: no graph needs them any more",
		   ADVISE_LINE(f), f->range ? " and of others" : "");
	advise_put(f->how,
		   "%s in %s %s that no graph held%s. A result that the program reads later "
		   "has to stay",
		   B(f->bytes), MANY(f->blocks, "block"), a->when,
		   f->range ? ", at least those of that line" : "");
}
