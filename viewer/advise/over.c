/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event since which a life is not used any more. For a life that ended its last use says so.
 * A life that is alive at the end (of the program, or when it was killed or ran out of memory)
 * counts if work has passed it by for more than twice as long as it, or another life of its
 * stack, ever waited before a use. If the rest of the run is unknown, there is one more
 * condition: results need lives of their stack, from an earlier step, that ended, and weights
 * need a step that went on without them.
 */
#include "../answers/used.h"
#include "advise.h"

#include "../../format/record.h"

/* Of a stack: the most work between two uses of one life, and the number of its lives of earlier
 * steps that ended. */
struct habit {
	uint32_t widest, ended;
};

struct search {
	struct advise *advise;
	MAP_OF(struct habit) stacks;
	struct used_weights weights;
	uint64_t *refusals; /* events of refusals on the device */
	size_t count, room;
};

/* The event after the pass or optimizer's step with that event; without one, the event after it. */
static uint64_t phase_end(const struct advise *a, uint64_t seq)
{
	const struct spans *s = &a->timeline->model.spans;
	size_t next = advise_spans_begun(a, seq);

	return next && s->items[next - 1].extent.last_seq > seq
		       ? s->items[next - 1].extent.last_seq + 1
		       : seq + 1;
}

static void find_refusals(struct search *s)
{
	const struct model *m = &s->advise->timeline->model;
	struct moment at = { .device = s->advise->timeline->device };

	for (; (at.seq = uses_refused(m, &at)) < s->advise->until; at.seq++)
		*need_item(s->refusals, s->count, s->room) = at.seq;
}

/* After a refusal frames end, and with them lives whose use was yet to come. Lives that are still
 * there in the pass after the next are held. */
static uint64_t after_refusals(const struct search *s, uint64_t used, const struct advised *l)
{
	const struct advise *a = s->advise;
	uint64_t next;

	FOR_EACH (const uint64_t, refused, s->refusals, s->count) {
		if (*refused < used || *refused >= l->until)
			continue;
		next = advise_next(a, *refused, PHASE_FORWARD);
		used = next == PLAN_END ? next : advise_next(a, next, PHASE_FORWARD);
	}
	return used;
}

static struct life_uses habit_of(const struct search *s, const struct advised *l,
				 const struct block_uses *x)
{
	const struct habit *h = map_find(&s->stacks, l->stack);
	struct life_uses of = x->works;

	if (h && h->widest > of.widest)
		of.widest = h->widest;
	return of;
}

/* Loaded from a file, and then copied: into the model, for example. */
static bool is_copied_on(const struct timeline *t, const struct advised *l,
			 const struct block_uses *x)
{
	return model_signs(&t->model, l->stack) & STACK_LOAD &&
	       uses_kind(&t->model.uses, x->works.last)->transfer == GMT_TRANSFER_SOURCE;
}

/* Whether the recording leaves open when the life would have been used again. */
static bool waits(const struct search *s, const struct advised *l, const struct block_uses *x)
{
	const struct timeline *t = s->advise->timeline;
	const struct habit *h = map_find(&s->stacks, l->stack);
	const struct life_uses of = habit_of(s, l, x);

	if (!x->whole)
		return true;
	if (is_copied_on(t, l, x))
		return false;
	if (!s->advise->open)
		return uses_waits(&t->model, &x->works, UINT64_MAX);
	if (!advise_knows_steps(s->advise))
		return true;
	if (l->classes & OF_THE_MODEL)
		return !used_no_more(t, s->advise->peak_seq, x, &s->weights,
				     l->classes & CLASS_BIT(parameters));
	return !h || !h->ended || uses_waits(&t->model, &of, s->advise->until);
}

static uint64_t over_since(const struct search *s, const struct advised *l)
{
	const struct advise *a = s->advise;
	struct block_uses x;
	uint64_t end;

	if (l->wanted)
		return PLAN_END;
	uses_of(&a->timeline->model, l->life, &x);
	if (!x.count || x.last_seq >= a->until || (l->until == PLAN_END && waits(s, l, &x)))
		return PLAN_END;
	end = phase_end(a, x.last_seq);
	l->course->loaded = is_copied_on(a->timeline, l, &x);
	end = l->course->loaded ? end : after_refusals(s, end, l);
	return end < l->until ? end : PLAN_END;
}

static void note_habits(struct search *s)
{
	struct advise *a = s->advise;
	const struct steps *steps = &a->timeline->steps;
	struct block_uses x;
	struct habit *h;

	s->weights = USED_WEIGHTS;
	ADVISE_EACH (a, UINT16_MAX, l) {
		if (l.wanted)
			continue;
		uses_of(&a->timeline->model, l.life, &x);
		h = map_item(&s->stacks, l.stack);
		if (x.count && l.until != PLAN_END &&
		    steps_at(steps, l.from) < steps_at(steps, a->peak_seq))
			h->ended++;
		h->widest = x.works.widest > h->widest ? x.works.widest : h->widest;
		if (l.classes & CLASS_BIT(parameters) && l.until == PLAN_END)
			used_weight(&s->weights, a->timeline, a->peak_seq, l.life);
	}
}

/* Notes from which block a work made the life: the only one of its large arguments that existed
 * before. Small tensors, such as the scalars of where(), do not count. */
static void note_made(struct advise *a, uint32_t life, uint32_t work, const uint32_t *lives,
		      size_t count)
{
	const struct model *m = &a->timeline->model;
	struct advised made, other;
	size_t read = 0;

	if (!uses_begin(m, life, work) || !advise_life(a, life, UINT16_MAX, &made))
		return;
	for (size_t i = 0; i < count; i++) {
		if (lives[i] == life || uses_begin(m, lives[i], work) ||
		    !advise_life(a, lives[i], UINT16_MAX, &other) || other.size <= LIVES_SMALL)
			continue;
		made.course->made_of = ++read == 1 ? lives[i] + 1 : 0;
		if (other.stack == made.stack && made.stack && made.size > other.size &&
		    made.born->stage == STAGE_OUTSIDE)
			++*map_put(&a->sums, made.stack, NULL);
	}
}

struct noting {
	struct advise *advise;
	size_t pass; /* latest pass that had begun */
	uint32_t source,
		source_of; /* latest work that is the source of a copy, and the life it reads */
};

static void note_pass(const struct noting *n, uint32_t life, struct life_course *c)
{
	const struct lives *l = n->advise->lives;

	if (c->later && n->pass > c->later)
		c->often = true;
	if (!c->later && n->pass > lives_position(l, lives_at(l, life)->born.position)->forwards)
		c->later = (uint32_t)n->pass;
}

/* A copy within the device is two works: first its source, then its target. */
static void note_copy(struct noting *n, uint32_t work, const struct use_kind *by, uint32_t life)
{
	const struct uses *u = &n->advise->timeline->model.uses;
	const struct use_kind *from = uses_kind(u, n->source);
	struct life_course *c = &n->advise->courses[life];

	if (by->transfer == GMT_TRANSFER_SOURCE) {
		n->source = work;
		n->source_of = life;
		return;
	}
	if (n->source + 1 == work && from->name == by->name && from->stack == by->stack &&
	    uses_begin(&n->advise->timeline->model, life, work)) {
		c->copied = true;
		c->made_of = n->source_of + 1;
	}
	c->written = uses_work(u, work)->seq;
}

static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	enum { MANY = 8 }; /* more arguments than this belong to all parameters at once */
	struct noting *n = ctx;
	struct advise *a = n->advise;
	const struct model *m = &a->timeline->model;
	const struct use_kind *by = uses_kind(&m->uses, work);
	const uint32_t signs = model_signs(m, by->stack);
	bool pass = by->node || signs & (STACK_FORWARD | STACK_STEP);
	uint64_t seq = uses_work(&m->uses, work)->seq;

	while (advise_pass_end(a, n->pass) <= seq)
		n->pass = advise_pass_after(a, n->pass);
	for (size_t i = 0; i < count; i++) {
		struct life_course *c = &a->courses[lives[i]];

		if (!advise_counted(a, lives[i]))
			continue;
		note_pass(n, lives[i], c);
		if (by->node && seq > c->saved)
			c->read = true;
		c->passed = pass ? seq + 1 : c->passed;
		c->begun = c->begun || !pass ? c->begun : seq;
		c->made = c->begun ? c->made : seq;
		if (by->transfer == GMT_TRANSFER_SOURCE || by->transfer == GMT_TRANSFER_TARGET)
			note_copy(n, work, by, lives[i]);
		else if (!pass || signs & STACK_STEP)
			c->computed = seq;
		if (count <= MANY)
			note_made(a, lives[i], work, lives, count);
	}
}

void advise_find_over(struct advise *a)
{
	bool known = uses_complete(&a->timeline->model);
	struct search s = { .advise = a };

	if (known && a->open)
		note_habits(&s);
	if (known) {
		find_refusals(&s);
		advise_works(a, note_work, &(struct noting){ .advise = a });
	}
	ADVISE_EACH (a, UINT16_MAX, l)
		l.course->over = known ? over_since(&s, &l) : PLAN_END;
	map_items_free(&s.stacks);
	free(s.refusals);
}
