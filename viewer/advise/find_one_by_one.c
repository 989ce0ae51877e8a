/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors that one line of the script makes and holds all at once, although they are then used
 * one at a time: squares of all gradients, a float32 copy of each. Once all exist, no work
 * uses two of them, none is used again after the next one, and everything used beside them
 * existed before or is small. So each could be made, used and freed before the next one.
 */
#include "../base/arithmetic.h"
#include "advise.h"

enum {
	FEWEST = 3,
	SMALL = 8,
	LEAST = LIVES_SMALL
}; /* blocks below 1/SMALL of the largest are small */

/* Blocks of one stack that exist at once, with no pass between them. */
struct turn {
	uint32_t stack, count, large; /* number of blocks, and of those that are not small */
	uint64_t begin, end;	      /* first birth, last end */
	uint64_t complete;	      /* the last one has been written */
	uint32_t last; /* the last one, left out because kernels after it might name it without a
			  use */
	uint64_t bytes, largest;
	uint32_t current, done; /* block in use (0 = none), and number of blocks used so far */
	uint64_t passed;	/* begin of the next pass */
	bool against;		/* a work uses several of them, or one again */
};

struct search {
	struct advise *advise;
	struct turn *turns;
	size_t count, room;
	struct map latest;   /* stack -> 1 + its latest turn */
	struct map of;	     /* life -> 1 + its turn */
	struct map finished; /* lives whose use is over */
	struct map never;    /* stacks with blocks that are not used one at a time */
};

/* Begin of the next pass of any kind: forward (with gradients or without), or backward. */
static uint64_t next_pass(const struct advise *a, uint64_t seq)
{
	uint64_t forward = arithmetic_least(advise_next(a, seq, PHASE_FORWARD),
					    advise_next(a, seq, PHASE_EVALUATION));

	return arithmetic_least(forward, advise_next(a, seq, PHASE_BACKWARD));
}

static bool is_candidate(const struct advise *a, const struct advised *l)
{
	return l->born->stage == STAGE_OUTSIDE && l->stack && l->size >= LEAST && !l->wanted &&
	       !l->course->saved && !(advise_tags(a, l) & (BLOCK_LEAF | BLOCK_GRAD));
}

static bool is_small(const struct search *s, const struct turn *t, uint32_t life)
{
	struct advised l;

	return !advise_life(s->advise, life, UINT16_MAX, &l) || l.size <= t->largest / SMALL;
}

static void add_waiting(struct search *s, const struct advised *l)
{
	uint32_t *latest = map_put(&s->latest, l->stack, NULL);
	struct turn *t = *latest ? &s->turns[*latest - 1] : NULL;
	struct block_uses x;

	if (!t || t->passed < l->from || t->end <= l->from) {
		t = need_item(s->turns, s->count, s->room);
		*t = (struct turn){ .stack = l->stack, .begin = l->from };
		t->passed = next_pass(s->advise, l->from);
		*latest = (uint32_t)s->count;
	}
	uses_of(&s->advise->timeline->model, l->life, &x);
	t->count++;
	t->complete = x.first_seq;
	t->bytes += l->size;
	t->end = arithmetic_most(t->end, l->until);
	t->largest = arithmetic_most(t->largest, l->size);
	*map_put(&s->of, l->life, NULL) = *latest;
	l->course->watched = true;
}

static void collect(struct search *s)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, ~CLASSES_THAT(STAY) | CLASS_BIT(gradients), l)
		if (is_candidate(a, &l))
			add_waiting(s, &l);
	ADVISE_EACH (a, UINT16_MAX, l) {
		const uint32_t *of = map_get(&s->of, l.life);
		struct turn *t = of ? &s->turns[*of - 1] : NULL;

		if (!t || is_small(s, t, l.life))
			continue;
		t->large++;
		t->last = l.life;
	}
}

/* The life does not depend on the others: it is small or was used before the first of them was
 * made. */
static bool is_free_of(const struct search *s, const struct turn *t, uint32_t life)
{
	struct block_uses x;

	if (is_small(s, t, life))
		return true;
	uses_of(&s->advise->timeline->model, life, &x);
	return x.first_seq < t->begin;
}

static void note_use(struct search *s, uint32_t life, const uint32_t *lives, size_t count,
		     uint64_t seq)
{
	const uint32_t *of = map_get(&s->of, life);
	struct turn *t = of ? &s->turns[*of - 1] : NULL;

	if (!t || seq <= t->complete || life == t->last || is_small(s, t, life))
		return;
	for (size_t i = 0; i < count; i++)
		t->against |=
			lives[i] != life && lives[i] != t->last && !is_free_of(s, t, lives[i]);
	if (t->current == life + 1)
		return;
	t->current = life + 1;
	if (map_add(&s->finished, life))
		t->done++;
	else
		t->against = true;
}

static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct search *s = ctx;
	uint64_t seq = uses_work(&s->advise->timeline->model.uses, work)->seq;

	for (size_t i = 0; i < count; i++)
		note_use(s, lives[i], lives, count, seq);
}

static bool is_one_by_one(const struct turn *t)
{
	return t->large >= FEWEST && t->done + 1 == t->large && !t->against &&
	       t->end <= t->passed && t->end != PLAN_END;
}

static void take_turn(const struct search *s, struct finding *f, const struct turn *t)
{
	const struct advise *a = s->advise;

	plan_with(&f->plan, PLAN_NONE, t->begin, t->end, t->largest);
	if (t->begin > a->peak_seq || a->peak_seq >= t->end)
		return;
	f->bytes += t->bytes;
	f->blocks += t->count;
}

static void add_one_by_one(struct search *s, const struct turn *latest)
{
	struct advise *a = s->advise;
	struct finding *f = advise_add(a, "one_by_one");
	struct advised largest = { 0 };

	ADVISE_EACH (a, UINT16_MAX, l) {
		if (l.stack != latest->stack || !map_get(&s->of, l.life))
			continue;
		plan_without(&f->plan, l.life, l.from, l.until, l.size);
		largest = l.size > largest.size ? l : largest;
	}
	FOR_EACH (const struct turn, t, s->turns, s->count)
		if (t->stack == latest->stack)
			take_turn(s, f, t);
	f->owner = advise_owner(a, &largest);
}

void advise_one_by_one(struct advise *a)
{
	struct search s = { .advise = a };

	collect(&s);
	advise_watched_works(a, note_work, &s);
	FOR_EACH (const struct turn, t, s.turns, s.count) {
		bool open = t->end == PLAN_END && a->wanted_count;

		if (!open && !is_one_by_one(t) && t->large >= FEWEST)
			*map_put(&s.never, t->stack, NULL) = 1;
	}
	FOR_EACH (const struct turn, t, s.turns, s.count)
		if (is_one_by_one(t) && !map_get(&s.never, t->stack)) {
			*map_put(&s.never, t->stack, NULL) = 1;
			add_one_by_one(&s, t);
		}
	free(s.turns);
	map_free(&s.latest);
	map_free(&s.of);
	map_free(&s.finished);
	map_free(&s.never);
}
