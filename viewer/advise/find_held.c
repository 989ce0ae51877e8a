/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are still there although nothing uses them any more, by the recorded uses: a fact of
 * the whole run. Each ends behind the pass, or the optimizer's step, that used it last, so the
 * saving is exact. The kind, and with it the sentence, is that of the line that made them: by class
 * and by what is there of it at the peak. What is freed within the phase of its last use is no
 * finding: an operator's or an optimizer's own lists end there.
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
	HELD_BY_NODE,
	HELD_OTHER,
	HELD_KINDS
};

enum { FEWEST = 3 }; /* passes whose results are there at once: a list, no variable of a loop */

static const char *const names[HELD_KINDS] = { "kept",		 "kept_results", "overlap",
					       "late_del",	 "unused",	 "loaded",
					       "idle_gradients", "held",	 "held" };

/* Blocks of a stack that are there at the peak. */
struct at_peak {
	uint32_t passes, latest; /* that left something; the latest of them */
	size_t steps, step;	 /* the same of earlier steps */
	bool later;		 /* of a pass before the one of the peak */
};

struct search {
	struct advise *advise;
	MAP_OF(struct at_peak) stacks; /* of results and copies of weights, by stack */
	struct map weights;	       /* life of a gradient -> 1 + that of its weight */
	size_t step;		       /* of the peak */
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
		x->passes += !x->passes || x->latest != l.born->forwards;
		x->latest = l.born->forwards;
		x->steps += step < s->step && (!x->steps || x->step != step);
		x->step = step;
		x->later |= l.born->forwards < s->pass;
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

/* What it is the gradient of: a weight, or a result. */
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
	if (!l->course->passed && x && x->steps > 1) /* copies of weights */
		return HELD_KEPT;
	if (model_signs(&s->advise->timeline->model, l->stack) & STACK_LOAD &&
	    !advise_leaf(s->advise, l))
		return HELD_LOADED;
	return l->classes & CLASS_BIT(gradients) && !leaf.size ? HELD_OTHER : HELD_UNUSED;
}

static bool is_computed(const struct advise *a, const struct advised *l)
{
	return l->classes & (CLASSES_THAT(ARE_OF_FORWARD) | CLASSES_THAT(ARE_COMPUTED)) &&
	       !(model_signs(&a->timeline->model, l->stack) & STACK_CAPTURE);
}

/* Before the first pass a script makes other things than results. */
static bool is_of_pass(const struct advise *a, const struct advised *l)
{
	return is_computed(a, l) && (l->born->forwards || l->born->stage == STAGE_FORWARD);
}

/* It lived through no more forward passes than a step has. */
static bool is_one_turn(const struct advise *a, const struct advised *l)
{
	size_t steps = steps_number(&a->timeline->steps);
	uint32_t all = a->timeline->model.spans.forwards;
	uint32_t passes = steps && all > steps ? (uint32_t)(all / steps) : 1;

	if (a->wanted_count)
		all = a->wanted->born->forwards;
	return (l->until == PLAN_END ? all : l->died->forwards) <= l->born->forwards + passes + 1;
}

/* Without a Function in Python, a node that reads such a tensor was given an old address. */
static bool has_functions(const struct model *m)
{
	for (uint32_t i = 1; i < m->uses.kinds.count; i++) {
		const struct use_kind *k = rows_at(&m->uses.kinds, i);

		if (k->node && !strcmp(defs_string(m->defs, k->node).s, "PyNode"))
			return true;
	}
	return false;
}

static enum kind kind_of(const struct search *s, const struct advised *l, uint64_t since)
{
	struct advised leaf = *l;
	const struct at_peak *x;
	bool later;

	/* What stays by its class, a cache for instance, is kept on purpose. */
	if (l->classes & CLASSES_THAT(STAY) &&
	    !(l->classes & (CLASSES_THAT(ARE_WEIGHTS) | CLASSES_THAT(FOLLOW_TRAINING))))
		return HELD_OTHER;
	if (leaf_of(s, l, &leaf) && !is_of_weights(&leaf))
		l = &leaf;
	if (is_of_weights(l))
		return kind_of_weights(s, l, since);
	/* Autograd did not save what a backward node read: an attribute of ctx, or a hook's. */
	if (!l->course->saved && l->course->read && !stage_is_backward(l->born->stage) &&
	    has_functions(&s->advise->timeline->model))
		return HELD_BY_NODE;
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

/* What the change of that kind surely ends, at the latest: a loop's variables have results until
 * the next ones are there, a graph is there until all of it has been used. */
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

/* A graph took it, and has it or may have. */
static bool is_in_graph(const struct advise *a, const struct advised *l)
{
	return l->course->saved && !advise_held(a, l);
}

/* Backward begins at a result and reads nothing of it: it is there until the next one has its turn.
 */
static bool is_until_backward(const struct advise *a, const struct advised *l)
{
	size_t pass = l->born->forwards;
	uint64_t walked = pass < a->passes.count ? a->passes.items[pass].walked : 0;

	return walked > l->course->over && l->until <= advise_next(a, walked, PHASE_BACKWARD);
}

/* A library keeps its workspace for the next call. What a graph holds while its own pass is at work
 * is no variable's: see find_no_grad.c. */
static bool is_held(const struct search *s, const struct advised *l, enum kind kind)
{
	return !(l->classes & CLASS_BIT(workspace)) &&
	       (kind != HELD_LATE || !is_in_graph(s->advise, l)) &&
	       (kind != HELD_KEPT_RESULTS || !is_until_backward(s->advise, l));
}

static void say_what(struct finding *f, enum kind kind, const struct search *s)
{
	const char *others = f->range ? " and other lines" : "";

	if (kind == HELD_LATE || kind == HELD_OVERLAP)
		advise_put(
			f->what,
			"Delete the variables that hold the results of %s%s as soon as they have "
			"been read%s: nothing uses them any more",
			ADVISE_LINE(f), others,
			kind == HELD_LATE ? "" : ", at the latest before the next pass");
	else if (kind == HELD_UNUSED)
		advise_put(
			f->what,
			"Release the models and optimizers of %s%s, which nothing uses any more: "
			"delete every reference to them, also in callbacks and closures, and "
			"call gc.collect() if objects refer to each other%s",
			ADVISE_LINE(f), others,
			s->advise->open ? ", unless a later phase uses them again" : "");
	else if (kind == HELD_BY_NODE)
		advise_put(f->what,
			   "Give the tensors of %s%s to ctx.save_for_backward() instead of keeping "
			   "them as attributes of ctx, or in a hook: they stay until the graph is "
			   "deleted, though backward is done with them",
			   ADVISE_LINE(f), others);
	else if (kind == HELD_OTHER)
		advise_put(f->what,
			   "Free what %s%s allocated after its last use (delete what refers to it, "
			   "or move it to the host): it is kept, but nothing uses it any more",
			   ADVISE_LINE(f), others);
}

static void add_finding(struct search *s, enum kind kind)
{
	const struct advise *a = s->advise;
	struct finding *f = lines_add_all(&s->lines[kind], s->advise, names[kind]);

	if (!f->bytes)
		return;
	say_what(f, kind, s);
	advise_put(f->how, "%s in %s %s that no kernel, copy or collective uses again%s",
		   B(f->bytes), MANY(f->blocks, "block"), a->when,
		   a->wanted_count ? ", as far as work before it shows" : "");
	f->range = true;
}

/* Since its last use, and at the latest when the change surely ends it. */
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
	for (enum kind kind = 0; kind < HELD_KINDS; kind++)
		add_finding(&s, kind);
	map_items_free(&s.stacks);
	map_free(&s.weights);
}
