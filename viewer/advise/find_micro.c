/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro-batches of one step, each with its own backward pass: what is still there of those whose
 * backward pass is over, while later ones run. A list of results that were not detached holds the
 * graph of each, and with it the tensors that require grad and their gradients.
 */

#include "advise.h"

enum { FEWEST = 3 }; /* micro-batches that show a habit */

struct search {
	struct advise *advise;
	uint64_t *over; /* of each pass: the event that ended its backward pass; PLAN_END = none */
	struct map counts; /* stack -> passes that left something of it at the peak */
	struct map kept;   /* life -> it is one of those */
	struct owner most; /* line that made the largest */
};

static bool is_of_pass(const struct search *s, const struct advised *l)
{
	uint32_t pass = l->born->forwards;

	if (l->classes & ~OF_ONE_PASS || l->life >= s->advise->lives->rows.count ||
	    pass >= s->advise->passes.count)
		return false;
	return l->born->stage == STAGE_FORWARD ||
	       (l->born->stage == STAGE_OUTSIDE &&
		(!(l->classes & CLASS_BIT(inputs)) || advise_leaf(s->advise, l)));
}

/* A pass whose graph was let go of by a backward pass, all that it had saved. What a later pass
 * saved is of that one's graph. */
static void find_over(struct search *s)
{
	const struct advise *a = s->advise;

	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		uint64_t *over = &s->over[l.born->forwards], end;

		if (!is_of_pass(s, &l) || !a->saved[l.life] || *over == PLAN_END ||
		    a->saved[l.life] >= advise_pass_end(a, l.born->forwards))
			continue;
		end = advise_in_graph(a, &l) ? l.until : a->released[l.life];
		if (end == PLAN_END || !advise_in(a, end, PHASE_BACKWARD))
			*over = PLAN_END;
		else if (end > *over)
			*over = end;
	}
}

/* The step of the peak began no later than with that event: before the first optimizer was seen,
 * with the pass of the first gradient that is there and another one was added to. */
static uint64_t first_of_step(const struct advise *a)
{
	const struct row_store *arrivals = &a->lives->arrivals;
	const struct steps *steps = &a->timeline->steps;
	uint64_t first = a->peak_seq;
	struct map times = { 0 };
	struct advised l;

	for (uint32_t i = 0; i < arrivals->count && !advise_knows_steps(a); i++) {
		const struct lives_arrival *x = rows_at(arrivals, i);

		if (x->seq < a->until && ++*map_put(&times, x->life, NULL) > 1 &&
		    advise_life(a, x->life, CLASS_BIT(gradients), &l) && advise_counts(a, &l))
			first = l.from < first ? l.from : first;
	}
	map_free(&times);
	return steps->count ? steps->items[steps_at(steps, first)].extent.first_seq : 0;
}

/* The event that ended the backward pass of its forward pass, 0 = none yet. A leaf that was made
 * after the previous backward pass is for the next forward pass. */
static uint64_t over_of(const struct search *s, const struct advised *l)
{
	const uint64_t *over = &s->over[l->born->forwards];

	if (!is_of_pass(s, l))
		return 0;
	if (l->born->stage == STAGE_OUTSIDE && l->from > *over && advise_leaf(s->advise, l))
		over++;
	return *over == PLAN_END ? 0 : *over;
}

/* Variables of a loop have the results of one micro-batch until the next one's are there. Returns
 * the event since which it is kept for nothing, PLAN_END = it is not. */
static uint64_t kept_since(const struct search *s, const struct advised *l)
{
	const struct advise *a = s->advise;
	uint64_t over = over_of(s, l), next;

	if (!over || advise_in_graph(a, l) || a->saved[l->life] > over || l->from > over)
		return PLAN_END;
	next = advise_next(a, over, PHASE_FORWARD);
	next = next == PLAN_END ? next : advise_next(a, next, PHASE_BACKWARD);
	return next < l->until ? next : PLAN_END;
}

static bool is_at_peak(const struct advise *a, const struct advised *l, uint64_t since)
{
	return since <= a->peak_seq && a->peak_seq < l->until;
}

/* Each pass counts once for a stack: lives are in order of birth. */
static void count_passes(struct search *s)
{
	uint64_t since = first_of_step(s->advise);
	struct map latest = { 0 };
	bool fresh;

	ADVISE_EACH (s->advise, CLASSES_THAT(ARE_OF_FORWARD), l) {
		uint32_t *pass;

		if (l.from < since || !is_at_peak(s->advise, &l, kept_since(s, &l)))
			continue;
		pass = map_put(&latest, l.stack, &fresh);
		if (fresh || *pass != l.born->forwards)
			++*map_put(&s->counts, l.stack, NULL);
		*pass = l.born->forwards;
	}
	map_free(&latest);
}

static void without(struct search *s, struct finding *f, const struct advised *l, uint64_t since)
{
	plan_without(&f->plan, since > l->from ? since : l->from, l->until, l->size);
	s->advise->shortened[l->life] = true;
	if (!is_at_peak(s->advise, l, since))
		return;
	f->bytes += l->size;
	f->blocks++;
}

/* The last result of a micro-batch that is kept is what the program has most likely kept. */
static void take_results(struct search *s, struct finding *f)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		const uint32_t *times = map_get(&s->counts, l.stack);
		uint64_t since = times && *times >= FEWEST ? kept_since(s, &l) : PLAN_END;

		if (since == PLAN_END)
			continue;
		without(s, f, &l, since);
		*map_put(&s->kept, l.life, NULL) = 1;
		f->owner = advise_owner(a, &l);
		if (l.size > f->largest)
			s->most = f->owner;
		f->largest = l.size > f->largest ? l.size : f->largest;
	}
}

/* Gradients of those that are leaves. */
static void take_gradients(struct search *s, struct finding *f)
{
	const struct row_store *arrivals = &s->advise->lives->arrivals;
	struct advised leaf, l;

	for (uint32_t i = 0; i < arrivals->count; i++) {
		const struct lives_arrival *x = rows_at(arrivals, i);

		if (x->seq >= s->advise->until || !x->leaf || !map_get(&s->kept, x->leaf - 1) ||
		    !advise_life(s->advise, x->leaf - 1, CLASSES_THAT(ARE_OF_FORWARD), &leaf) ||
		    !advise_life(s->advise, x->life, CLASS_BIT(gradients), &l))
			continue;
		l.until = l.until < leaf.until ? l.until : leaf.until;
		without(s, f, &l, kept_since(s, &leaf));
	}
}

static void say_kept(struct search *s, struct finding *f)
{
	advise_put(f->how,
		   "%s in %s of earlier micro-batches %s, most of it made by %s. Their "
		   "backward passes are over, and no graph needs them",
		   B(f->bytes), MANY(f->blocks, "block"), s->advise->when,
		   owner_words(&s->most, (char[OWNER_WORDS]){ 0 }, OWNER_WORDS, 0));
}

void advise_kept_results(struct advise *a)
{
	struct search s = { .advise = a };
	struct finding *f = advise_add(a, "kept_results");

	s.over = need_new((a->passes.count + 1) * sizeof(*s.over));
	find_over(&s);
	count_passes(&s);
	take_results(&s, f);
	take_gradients(&s, f);
	if (f->bytes)
		say_kept(&s, f);
	map_free(&s.counts);
	map_free(&s.kept);
	free(s.over);
}
