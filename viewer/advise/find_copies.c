/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of weights, found by the work that made each. Three kinds are unnecessary. Copies that
 * only copies read (the best weights so far, a saved state dict) can be on the host. If
 * neither the weight nor the copy is trained or written later (a reference beside a frozen
 * model), one is enough. Frozen weights can stay in the narrower type that they were converted
 * from.
 */
#include "advise.h"

enum kind { ONLY_COPIED, EQUAL, WIDER, KINDS };
/* In bytes. A block is at most TAIL larger than its tensor. */
enum { UNIT = 512, TAIL = 1 << 20 };

struct search {
	struct advise *advise;
	struct map copied; /* life of the original -> UNITs of its copies at the peak */
	struct map read;   /* stacks whose copies are read later */
};

struct copies {
	struct line_plans lines;
	struct advised largest; /* original of the largest copy */
};

/* Since the event only passes have used it, and nothing has trained it. */
static bool is_unchanged(const struct advise *a, const struct advised *l, uint64_t since)
{
	const struct life_course *c = l->course;

	return l->classes & CLASS_BIT(parameters) && !advise_leaf(a, l) && c->computed <= since &&
	       c->written <= since;
}

/* Made by a copy, or by a kernel that only copies. */
static bool is_plain_copy(struct advise *a, const struct advised *l)
{
	const char *op = ops_find(a, l)->name;

	return l->course->copied || words_in(op, strlen(op), ONE_OF("clone", "contiguous"));
}

static enum kind kind_of(struct advise *a, const struct advised *l, struct advised *of)
{
	struct block_uses x;

	if (l->wanted || l->born->stage != STAGE_OUTSIDE || !advise_made_of(a, l, of))
		return KINDS;
	uses_of(&a->timeline->model, l->life, &x);
	if (advise_is_half(of->size, l->size))
		return is_unchanged(a, l, x.first_seq) && ops_is_cast(ops_find(a, l)->name) ? WIDER
											    : KINDS;
	if (!(of->classes & CLASS_BIT(parameters)) || !is_plain_copy(a, l))
		return KINDS;
	if (!l->course->passed && l->course->computed <= x.first_seq && l->size <= of->size + TAIL)
		return ONLY_COPIED;
	return l->size + TAIL > of->size && is_unchanged(a, l, x.first_seq) &&
			       is_unchanged(a, of, x.first_seq) && advise_counts(a, of)
		       ? EQUAL
		       : KINDS;
}

static void note_copy(struct search *s, const struct advised *l, const struct advised *of)
{
	struct block_uses x;

	uses_of(&s->advise->timeline->model, l->life, &x);
	if (x.count > 1)
		*map_put(&s->read, l->stack, NULL) = 1;
	if (advise_counts(s->advise, l))
		*map_put(&s->copied, of->life, NULL) += (uint32_t)(l->size / UNIT);
}

/* Excluded: more than one copy of the same bytes at once (a list of states) and copies that nothing
 * reads. find_held.c handles both. */
static bool is_ours(struct search *s, const struct advised *l, const struct advised *of,
		    enum kind kind)
{
	return kind == WIDER ||
	       (*map_put(&s->copied, of->life, NULL) <= (of->size + of->size / 2) / UNIT &&
		(kind == EQUAL || map_get(&s->read, l->stack)));
}

/* A pass has used the copy and, if it stays, the original. Until then either might still be
 * trained. */
static bool is_proven(const struct advised *l, const struct advised *of, enum kind kind)
{
	return kind == ONLY_COPIED || (l->course->passed && (kind == WIDER || of->course->passed));
}

static void plan_copy(struct copies *c, struct advise *a, struct advised l,
		      const struct advised *of, enum kind kind)
{
	bool counts = advise_counts(a, &l);
	struct line_plan *line = lines_of(&c->lines, a, &l);

	c->largest = counts && l.size > c->largest.size ? *of : c->largest;
	l.size = kind == WIDER ? l.size / 2 : l.size;
	plan_without(&line->plan, l.life, l.from, l.until, l.size);
	if (is_proven(&l, of, kind))
		plan_without(&line->cautious, l.life, l.from, l.until, l.size);
	line->bytes += counts ? l.size : 0;
	line->blocks += counts;
	if (kind == ONLY_COPIED)
		l.course->shortened = true;
}

static void add_finding(struct advise *a, struct copies *c, enum kind kind)
{
	static const char *const words[KINDS] = { "weight_copies", "equal_copies", "wider_copies" };
	struct owner of = advise_owner(a, &c->largest);
	struct finding *f = lines_add_all(&c->lines, a, "weight_copies");

	f->range = f->sure = true;
	f->words = words[kind];
	f->of = of;
}

void advise_weight_copies(struct advise *a)
{
	struct copies all[KINDS] = { 0 };
	struct search s = { .advise = a };
	struct advised of;

	ADVISE_EACH (a, UINT16_MAX, l)
		if (kind_of(a, &l, &of) < WIDER)
			note_copy(&s, &l, &of);
	ADVISE_EACH (a, UINT16_MAX, l) {
		enum kind kind = kind_of(a, &l, &of);

		if (kind < KINDS && is_ours(&s, &l, &of, kind))
			plan_copy(&all[kind], a, l, &of, kind);
	}
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (all[kind].largest.size)
			add_finding(a, &all[kind], kind);
		else
			lines_free(&all[kind].lines);
	map_free(&s.copied);
	map_free(&s.read);
}
