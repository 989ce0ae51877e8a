/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors that a line of the script makes of the gradients, one of each (absolute values, squares,
 * copies), all held at once. Once they are there only small results are made, and all are gone
 * before the next pass: each could go before the next one is made. That an optimizer makes the
 * update shows that they are not its arithmetic; what is done in place is not recorded.
 */

#include "../base/arithmetic.h"
#include "advise.h"

enum { FEWEST = 3, SMALL = 8 }; /* an eighth of the largest: smaller than a mask of it */

/* Blocks of one stack; the latest turn begins at `first`. */
struct line {
	uint32_t *lives;
	size_t count, room, first;
	bool once, never; /* a turn was as it should be; one was not */
	bool flat;	  /* each is all gradients in one */
};

struct search {
	struct advise *advise;
	uint64_t all, largest; /* bytes of the gradients, and of the largest */
	struct map ids;	       /* stack -> index */
	struct line *items;
	size_t count, room;
};

struct turn {
	uint64_t begin, complete, end; /* the first and the last birth, the last death */
	uint64_t bytes, largest;       /* of those that are there at once, at the last birth */
	size_t blocks;
};

static struct turn read_turn(const struct advise *a, const struct line *x, size_t first, size_t end)
{
	struct turn t = { 0 };
	struct advised l;

	for (size_t i = end; i-- > first && advise_life(a, x->lives[i], UINT16_MAX, &l);) {
		t.complete = t.complete ? t.complete : l.from;
		t.begin = l.from;
		t.end = arithmetic_most(t.end, l.until);
		if (l.until <= t.complete)
			continue;
		t.blocks++;
		t.bytes += l.size;
		t.largest = arithmetic_most(t.largest, l.size);
	}
	return t;
}

/* The next pass of any kind: forward, without gradients, or backward. */
static uint64_t next_pass(const struct advise *a, uint64_t seq)
{
	uint64_t forward = advise_next(a, seq, PHASE_FORWARD);
	uint64_t other = advise_next(a, seq, PHASE_EVALUATION);
	uint64_t backward = advise_next(a, seq, PHASE_BACKWARD);

	forward = forward < other ? forward : other;
	return forward < backward ? forward : backward;
}

static bool makes_small(const struct advise *a, const struct turn *t)
{
	uint32_t end = lives_born_by(a->lives, t->end);

	if (next_pass(a, t->complete) < t->end)
		end = lives_born_by(a->lives, next_pass(a, t->complete));
	for (uint32_t i = lives_born_by(a->lives, t->complete); i < end; i++) {
		const struct life *row = lives_at(a->lives, i);
		const struct position *born = lives_position(a->lives, row->born.position);

		if (born->stage == STAGE_OUTSIDE && born->layer == LIFE_BLOCK &&
		    lives_request(a->lives, row)->size > t->largest / SMALL)
			return false;
	}
	return true;
}

/* The block that came last, of the same line, took its place: nobody reads it any more. */
static bool is_replaced(const struct search *s, const struct line *x, const struct turn *t)
{
	const struct lives *l = s->advise->lives;
	uint32_t last = lives_born_by(l, t->end) - 1;

	return x->flat && lives_request(l, lives_at(l, last))->stack ==
				  lives_request(l, lives_at(l, x->lives[x->first]))->stack;
}

static void end_turn(const struct search *s, struct line *x)
{
	const struct advise *a = s->advise;
	struct turn t = read_turn(a, x, x->first, x->count);

	x->flat = t.blocks == 1 && t.bytes >= s->all / 20 * 19 && t.bytes <= 2 * s->all;
	if (t.end == PLAN_END) /* not over, at a refusal */
		x->never |= !a->wanted_count && !x->flat;
	else if ((t.blocks < FEWEST && !x->flat) || !makes_small(a, &t) ||
		 (t.end >= next_pass(a, t.begin) && !is_replaced(s, x, &t)))
		x->never = true;
	else
		x->once = true;
	x->first = x->count;
}

static bool is_of_gradient(const struct advise *a, const struct advised *l)
{
	return l->born->stage == STAGE_OUTSIDE && l->born->backwards && l->stack &&
	       !advise_tags(a, l);
}

static void collect(struct search *s)
{
	struct advise *a = s->advise;
	struct advised before;

	/* What a script makes of gradients, it makes before the optimizer, and rules take it for
	 * one of these. */
	ADVISE_EACH (a, CLASS_BIT(optimizer_temporaries) | CLASS_BIT(gradients), l) {
		struct line *x;

		if (!is_of_gradient(a, &l))
			continue;
		x = map_item(s, l.stack);
		if (x->count > x->first &&
		    advise_life(a, x->lives[x->count - 1], UINT16_MAX, &before) &&
		    before.born->backwards != l.born->backwards)
			end_turn(s, x);
		*need_item(x->lives, x->count, x->room) = l.life;
	}
}

/* In each turn the largest is there all the time. */
static void look_at(const struct search *s, const struct line *x)
{
	struct advise *a = s->advise;
	struct finding *f = advise_add(a, "one_by_one");
	uint64_t bytes = 0, blocks = 0;
	struct advised l, next;
	struct turn t;

	for (size_t first = 0, i = 0; i < x->count; i++) {
		bool last = i + 1 == x->count;

		advise_life(a, x->lives[i], UINT16_MAX, &l);
		plan_without(&f->plan, l.from, l.until, l.size);
		if (!last)
			advise_life(a, x->lives[i + 1], UINT16_MAX, &next);
		if (!last && next.born->backwards == l.born->backwards)
			continue;
		t = read_turn(a, x, first, i + 1);
		plan_with(&f->plan, t.begin, x->flat ? t.begin + 1 : t.end,
			  x->flat ? s->largest : t.largest);
		if (t.begin <= a->peak_seq && a->peak_seq < t.end) {
			bytes += t.bytes;
			blocks += t.blocks;
		}
		first = i + 1;
	}
	advise_put(f->how,
		   "%s in %s %s%s. Once all are there, nothing larger than an eighth of the "
		   "largest is made. The saving is all but the largest%s",
		   B(bytes), MANY(blocks, "block"), a->when,
		   x->flat ? ", each as large as all gradients" : "", x->flat ? " gradient" : "");
	f->owner = advise_owner(a, &l);
	advise_put(f->what,
		   "%s one at a time, and free each before the next, unless all are "
		   "needed together",
		   x->flat ? "Take the gradients" : "Make these tensors of the gradients");
}

void advise_one_by_one(struct advise *a)
{
	struct search s = { .advise = a };

	ADVISE_EACH (a, CLASS_BIT(gradients), l) {
		if (!advise_counts(a, &l) || is_of_gradient(a, &l))
			continue;
		s.all += l.size;
		s.largest = arithmetic_most(s.largest, l.size);
	}
	if (a->timeline->steps.basis == STEPS_OPTIMIZER)
		collect(&s);
	FOR_EACH (struct line, x, s.items, s.count) {
		end_turn(&s, x);
		if (x->once && !x->never)
			look_at(&s, x);
		free(x->lives);
	}
	map_items_free(&s);
}
