/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are alive although nothing uses them again, by the recorded uses of the whole run.
 * The plan ends each at the end of the pass or optimizer's step of its last use, so the saving
 * is exact. Class and the number of such blocks of a line at the peak decide the kind and its
 * sentence. Blocks freed in the phase of their last use are left out: operators and optimizers
 * hold lists until they return.
 */
#include "../base/arithmetic.h"
#include "advise.h"

enum kind {
	HELD_KEPT,
	HELD_KEPT_RESULTS,
	HELD_OVERLAP,
	HELD_LATE,
	HELD_UNUSED,
	HELD_LOADED,
	HELD_GRADIENTS,
	HELD_OTHER,
	HELD_KINDS
};

enum { FEWEST = 3 }; /* results of so many passes at once are a list and not a loop variable */

static const char *const names[HELD_KINDS] = { "kept",		 "kept_results", "overlap",
					       "late_del",	 "unused",	 "loaded",
					       "idle_gradients", "held" };

/* Blocks of a stack at the peak. */
struct at_peak {
	uint32_t passes, latest; /* number of passes that made one, and the latest */
	size_t steps, step;	 /* the same for earlier steps */
	bool later;		 /* one is of a pass before the peak's */
};

struct search {
	struct advise *advise;
	MAP_OF(struct at_peak) stacks; /* of results and of copies of weights */
	struct map weights;	       /* gradient -> 1 + its weight */
	size_t step;		       /* step of the peak */
	uint32_t pass;
	struct line_plans lines[HELD_KINDS];
};

static bool is_of_weights(const struct advised *l)
{
	return l->classes & OF_THE_MODEL;
}

static void note_results(struct search *s)
{
	const struct advise *a = s->advise;

	ADVISE_EACH (a, UINT16_MAX, l) {
		size_t step = steps_at(&a->timeline->steps, l.from);
		struct at_peak *x;

		if ((is_of_weights(&l) && l.course->passed) || !advise_counts(a, &l) ||
		    l.course->over > a->peak_seq)
			continue;
		x = map_item(&s->stacks, l.stack);
		if (!x->passes || x->latest != l.born->forwards)
			x->passes++;
		x->latest = l.born->forwards;
		if (step < s->step && (!x->steps || x->step != step))
			x->steps++;
		x->step = step;
		if (l.born->forwards < s->pass)
			x->later = true;
	}
}

static void note_weights(struct search *s)
{
	const struct lives *l = s->advise->lives;

	for (uint32_t i = 0; i < l->arrivals.count; chunks_rest(l->pool), i++) {
		const struct lives_arrival *x = rows_at(&l->arrivals, i);

		if (s->advise->courses[x->life].classes & CLASS_BIT(gradients))
			*map_put(&s->weights, x->life, NULL) = x->leaf;
	}
}

/* The weight, or result, that it is the gradient of. */
static bool leaf_of(const struct search *s, const struct advised *l, struct advised *leaf)
{
	const uint32_t *of = map_get(&s->weights, l->life);

	return l->classes & CLASS_BIT(gradients) && of && *of &&
	       advise_life(s->advise, *of - 1, UINT16_MAX, leaf);
}

static enum kind kind_of_weights(const struct search *s, const struct advised *l, uint64_t since)
{
	const struct at_peak *x = map_find(&s->stacks, l->stack);
	struct advised leaf = { 0 };

	if (leaf_of(s, l, &leaf) && leaf.course->over > since)
		return HELD_GRADIENTS;
	if (!l->course->passed && x && x->steps > 1) /* copies of weights, one a step */
		return HELD_KEPT;
	if (model_signs(&s->advise->timeline->model, l->stack) & STACK_LOAD &&
	    !advise_leaf(s->advise, l))
		return HELD_LOADED;
	return l->classes & CLASS_BIT(gradients) && !leaf.size ? HELD_OTHER : HELD_UNUSED;
}

/* Where zero_grad() after the step frees gradients of weights in use, it also frees those of
 * weights that nothing uses any more. */
static void add_gradients(struct search *s)
{
	struct line_plans *lines = &s->lines[HELD_GRADIENTS];
	struct advised leaf;

	if (!ANY_OF(x, lines->items, lines->count, x->bytes))
		return;
	ADVISE_EACH (s->advise, CLASS_BIT(gradients), l) {
		uint64_t over = l.course->over == PLAN_END ? l.course->passed : l.course->over;

		if (!over || over >= l.until || !leaf_of(s, &l, &leaf) || !is_of_weights(&leaf) ||
		    leaf.course->over == PLAN_END || leaf.course->over > l.course->over)
			continue;
		plan_without(&lines_of(lines, s->advise, &l)->cautious, l.life, over, l.until,
			     l.size);
		lines_without(lines, s->advise, &l, over);
	}
}

static bool is_computed(const struct advise *a, const struct advised *l)
{
	return l->classes & (CLASSES_THAT(ARE_OF_FORWARD) | CLASSES_THAT(ARE_COMPUTED)) &&
	       !(model_signs(&a->timeline->model, l->stack) & STACK_CAPTURE);
}

/* A result of a pass. Before the first pass a script makes other things. */
static bool is_of_pass(const struct advise *a, const struct advised *l)
{
	return is_computed(a, l) && (l->born->forwards || l->born->stage == STAGE_FORWARD);
}

/* It lived through at most as many forward passes as a step has. */
static bool is_one_turn(const struct advise *a, const struct advised *l)
{
	size_t steps = steps_number(&a->timeline->steps);
	uint32_t all = a->timeline->model.spans.forwards;
	uint32_t passes = steps && all > steps ? (uint32_t)(all / steps) : 1;

	if (a->wanted_count)
		all = a->wanted->born->forwards;
	return (l->until == PLAN_END ? all : l->died->forwards) <= l->born->forwards + passes + 1;
}

static enum kind kind_of(const struct search *s, const struct advised *l, uint64_t since)
{
	struct advised leaf = *l;
	const struct at_peak *x;
	bool later;

	/* Classes that stay by definition, such as a cache, are kept on purpose. */
	if (l->classes & CLASSES_THAT(STAY) &&
	    !(l->classes & (CLASSES_THAT(ARE_WEIGHTS) | CLASSES_THAT(FOLLOW_TRAINING))))
		return HELD_OTHER;
	if (leaf_of(s, l, &leaf) && !is_of_weights(&leaf))
		l = &leaf;
	if (is_of_weights(l))
		return kind_of_weights(s, l, since);
	/* A backward node read it although autograd did not save it: no variable need hold it. */
	if (!l->course->saved && l->course->read && !stage_is_backward(l->born->stage))
		return HELD_OTHER;
	x = map_find(&s->stacks, l->stack);
	if (!is_computed(s->advise, l) || !advise_knows_graphs(s->advise))
		return HELD_OTHER;
	later = x && x->later;
	if (later && x->steps > 1)
		return HELD_KEPT;
	if (!is_of_pass(s->advise, l))
		return HELD_OTHER;
	if (later && x->passes >= FEWEST)
		return HELD_KEPT_RESULTS;
	if (!is_one_turn(s->advise, l))
		return HELD_OTHER;
	return later ? HELD_OVERLAP : HELD_LATE;
}

/* The event at which the change of that kind ends it at the latest. A loop variable holds a result
 * until the next is there, and a graph is alive until all of it has been used. */
static uint64_t latest_end(const struct search *s, const struct advised *l, enum kind kind)
{
	const struct advise *a = s->advise;
	const struct steps *steps = &a->timeline->steps;
	uint64_t since = l->course->over;

	switch (kind) {
	case HELD_KEPT:
		return arithmetic_most(since,
				       steps->items[steps_at(steps, l->from)].extent.last_seq);
	case HELD_OVERLAP:
		return arithmetic_most(since, advise_next_pass(a, l));
	case HELD_KEPT_RESULTS:
		return advise_next(a, advise_next(a, since, PHASE_FORWARD), PHASE_BACKWARD);
	default:
		return since;
	}
}

/* A graph saved it and holds it, or might. */
static bool is_in_graph(const struct advise *a, const struct advised *l)
{
	return l->course->saved && !advise_held(a, l);
}

/* A result that backward starts from is alive until the next backward pass, though backward does
 * not read it. */
static bool is_until_backward(const struct advise *a, const struct advised *l)
{
	size_t pass = l->born->forwards;
	uint64_t walked = pass < a->passes.count ? a->passes.items[pass].walked : 0;

	return walked > l->course->over && l->until <= advise_next(a, walked, PHASE_BACKWARD);
}

/* Excluded: workspaces, which libraries keep for their next call, and blocks that a graph holds
 * during their own pass (find_no_grad.c). */
static bool is_held(const struct search *s, const struct advised *l, enum kind kind)
{
	return !(l->classes & CLASS_BIT(workspace)) &&
	       (kind != HELD_LATE || !is_in_graph(s->advise, l)) &&
	       (kind != HELD_KEPT_RESULTS || !is_until_backward(s->advise, l));
}

/* Ends the life at its last use; in the cautious plan when the change surely ends it. */
static void end_life(struct search *s, const struct advised *l, enum kind kind)
{
	uint64_t since = l->course->over, latest = latest_end(s, l, kind);
	struct line_plan *line;

	if (latest >= l->until && is_of_pass(s->advise, l) && kind != HELD_KEPT)
		kind = HELD_LATE;
	if (latest >= l->until)
		latest = since;
	if (!is_held(s, l, kind))
		return;
	line = lines_of(&s->lines[kind], s->advise, l);
	plan_without(&line->cautious, l->life, latest, l->until, l->size);
	lines_without(&s->lines[kind], s->advise, l,
		      is_in_graph(s->advise, l) || kind == HELD_KEPT_RESULTS ? latest : since);
}

void advise_held_beyond_use(struct advise *a)
{
	struct search s = { .advise = a, .step = steps_at(&a->timeline->steps, a->peak_seq) };
	const struct span *at =
		steps_span(&a->timeline->steps, &a->timeline->model.spans, a->peak_seq);
	bool in_backward = at && at->phase == PHASE_BACKWARD;

	ADVISE_EACH (a, UINT16_MAX, l)
		if (l.from <= a->peak_seq)
			s.pass = l.born->forwards;
	note_results(&s);
	note_weights(&s);
	ADVISE_EACH (a, UINT16_MAX, l) {
		uint64_t since = l.course->over;

		if (since < l.until && !l.course->shortened)
			end_life(&s, &l, kind_of(&s, &l, since));
	}
	add_gradients(&s);
	for (enum kind kind = 0; kind < HELD_KINDS; kind++) {
		struct finding *f = lines_add_all(&s.lines[kind], a, names[kind]);

		f->range = true;
		if (kind == HELD_OVERLAP && in_backward)
			f->words = "overlap_in_backward";
	}
	map_items_free(&s.stacks);
	map_free(&s.weights);
}
