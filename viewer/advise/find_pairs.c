/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of all pairs in a script, such as the similarities in an evaluation: no graph saves
 * them, and sorts, comparisons and sums leave only small results. Computed for an eighth of
 * the rows at a time they need an eighth of the memory. Rows are independent as long as the
 * operators come in the order arithmetic, sorts and comparisons, sums.
 */

#include "../base/arithmetic.h"
#include "advise.h"

enum { PIECES = 8, LIKE = 4, SMALL = 32, AHEAD = 8 };
enum work { WORK_ANY, WORK_ARITHMETIC, WORK_ORDER, WORK_SUM, WORK_OTHER };

static enum work work_of(const char *op)
{
	static const char *const names[] = {
		[WORK_ANY] = " masked_ to_ where_",
		[WORK_ARITHMETIC] = " add_ sub_ rsub_ mul_ div_ neg exp clamp_ sqrt abs",
		[WORK_ORDER] = " sort_ argsort topk eq_ ne_ gt_ ge_ lt_ le_ gather",
		[WORK_SUM] = " sum_ any_",
	};
	char word[32];
	enum work work = WORK_ANY;

	snprintf(word, sizeof(word), " %.*s", (int)strcspn(op, "_") + 1, op);
	while (work < WORK_OTHER && !strstr(names[work], word))
		work++;
	return op[0] ? work : WORK_OTHER;
}

struct pairs {
	struct advise *advise;
	struct line_plans lines;
	struct line_plans
		calls; /* blocks: calls; lines: calls by rows; bytes: pass of the latest call */
	struct advised first;
	uint64_t until; /* end of the last large block */
	enum work done;
};

/* The product itself. Excluded: temporaries that cdist makes from its operands. */
static bool is_first(struct pairs *p, const struct advised *l)
{
	const struct op *op;
	struct advised next;

	if (l->size < p->advise->least || l->size < SCORES_MIN || l->born->stage != STAGE_OUTSIDE)
		return false;
	op = ops_find(p->advise, l);
	if (!strstr(op->name, "cdist"))
		return ops_is_product(op->name);
	for (uint32_t i = l->life + 1; i <= l->life + AHEAD && i < advise_lives(p->advise); i++)
		if (advise_life(p->advise, i, FORWARD_RESULTS, &next) && next.size > l->size &&
		    ops_find(p->advise, &next)->at == op->at)
			return false;
	return true;
}

static bool is_large(const struct pairs *p, const struct advised *l)
{
	return l->size >= p->first.size / LIKE;
}

/* Whether the rows are still independent after the next operator. A comparison with a figure of all
 * rows ends that. */
static bool goes_on(struct pairs *p, const struct advised *l)
{
	struct advise *a = p->advise;
	const struct op *op = ops_find(a, l);
	enum work work = work_of(op->name);

	if (l->born->stage != STAGE_OUTSIDE || (l->course->saved))
		return false;
	if (is_large(p, l) && (work == WORK_OTHER || (work && work < p->done) ||
			       (l->until == PLAN_END && !a->wanted_count)))
		return false;
	if (!is_large(p, l) && !p->done && op->at == ops_find(p->advise, &p->first)->at)
		return true; /* a temporary of the product */
	if (work == WORK_SUM && !is_large(p, l) && l->size > LIVES_SMALL)
		work = WORK_ORDER; /* a sum for each row */
	work = work == WORK_OTHER ? WORK_SUM : work;
	p->done = work > p->done ? work : p->done;
	return is_large(p, l) || (l->size <= p->first.size / SMALL && !ops_is_product(op->name));
}

/* Whether everything made while the product, or a large result of it, is alive works row by row.
 * take: plans the large blocks without seven eighths of their bytes. */
static bool follow(struct pairs *p, const struct advised *first, bool take)
{
	struct advise *a = p->advise;
	struct advised l, part = *first;

	p->first = *first;
	p->until = first->until;
	p->done = WORK_ANY;
	for (uint32_t i = first->life; i < advise_lives(a); i++) {
		if (!advise_life(a, i, (unsigned)~CLASS_BIT(workspace), &l))
			continue;
		if (l.from >= p->until)
			break;
		if (i == first->life ? l.course->saved != 0 : !goes_on(p, &l))
			return false;
		if (!is_large(p, &l))
			continue;
		p->until = arithmetic_most(p->until, l.until);
		part.from = l.from;
		part.until = l.until;
		part.size = l.size - l.size / PIECES;
		if (take)
			lines_without(&p->lines, a, &part, l.from);
	}
	return true;
}

/* Counts a call of a line. A line that is called again within a pass works in pieces already. */
static void note_call(struct line_plan *line, const struct advised *l, bool rows)
{
	line->blocks += 1 + (line->bytes == l->born->forwards);
	line->lines += rows;
	line->bytes = l->born->forwards;
}

/* Reports lines all of whose calls work row by row. A refused call is judged by the calls before
 * it. */
void advise_pairs(struct advise *a)
{
	struct pairs p = { .advise = a };
	struct line_plan *line;
	struct finding *f;

	ADVISE_EACH (a, FORWARD_RESULTS, l)
		if (is_first(&p, &l) && l.until != PLAN_END)
			note_call(lines_of(&p.calls, a, &l), &l,
				  follow(&p, &l, false) && p.done >= WORK_ORDER);
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		if (!is_first(&p, &l))
			continue;
		line = lines_of(&p.calls, a, &l);
		if (line->blocks && line->lines == line->blocks && follow(&p, &l, false))
			follow(&p, &l, true);
	}
	f = lines_add_all(&p.lines, a, "in_rows");
	f->bytes = f->bytes / (PIECES - 1) * PIECES; /* with the eighth that stays */
	lines_free(&p.calls);
}
