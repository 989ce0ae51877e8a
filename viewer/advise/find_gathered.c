/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of passes without gradients that a script gathers: a list of what an evaluation predicts,
 * and one tensor of all at its end; or one that each pass makes larger.
 */

#include "advise.h"

enum { PASSES = 3, FEWEST = 4 }; /* that a result stays through; results of a line */

/* Nothing that backward would need was saved in its pass, and a script has it into a later one.
 * A cache, which layers hand on to later passes, is no result: something of its pass came after it
 * and stayed, too. */
static bool is_result(const struct advise *a, const uint32_t *last, const struct advised *l)
{
	const struct advise_passes *passes = &a->passes;
	uint32_t pass = l->born->forwards;

	return !a->open && pass && pass < passes->count && !passes->items[pass].kept &&
	       !a->saved[l->life] && (l->born->stage == STAGE_OUTSIDE || last[pass] == l->life) &&
	       l->until > advise_next_pass(a, l);
}

/* A variable of a loop has the result of one pass until the next one's is there. */
static bool is_gathered(const struct advise *a, const struct advised *l)
{
	uint32_t all = a->timeline->model.spans.forwards;

	return (l->until == PLAN_END ? all : l->died->forwards) >= l->born->forwards + PASSES;
}

/* For each pass the last life that was made in it and stays into the next one. */
static uint32_t *last_results(const struct advise *a)
{
	uint32_t *last = need_new(a->passes.count * sizeof(*last));

	ADVISE_EACH (a, FORWARD_RESULTS, l)
		if (l.born->stage == STAGE_FORWARD && l.born->forwards < a->passes.count &&
		    l.until > advise_next_pass(a, &l))
			last[l.born->forwards] = l.life;
	return last;
}

/* A tensor of all results so far. Before any training they may be for it, and a program that only
 * generates takes them in its next pass. */
static bool is_sum(const struct advise *a, const struct advised *l)
{
	const struct advise_passes *passes = &a->passes;
	enum steps_basis basis = a->timeline->steps.basis;

	return map_get(&a->sums, l->stack) &&
	       (basis == STEPS_OPTIMIZER || basis == STEPS_PROFILER) &&
	       l->born->forwards < passes->count && !passes->items[l->born->forwards].kept &&
	       (l->life >= a->lives->rows.count || !a->saved[l->life]);
}

/* The tensor of all results that is made behind the last pass is on the host, too. If a graph takes
 * it, none of them go. */
static void without_whole(struct line_plans *lines, struct advise *a)
{
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		if (l.born->stage != STAGE_OUTSIDE || map_get(&a->sums, l.stack))
			continue;
		FOR_EACH (struct line_plan, line, lines->items, lines->count) {
			if (l.size < line->bytes / 10 * 9 || l.size > line->bytes / 10 * 11)
				continue;
			if (a->saved[l.life])
				line->bytes = 0;
			else
				plan_without(&line->plan, l.from, l.until, l.size);
		}
	}
}

static void say_gathered(struct advise *a, struct finding *f)
{
	advise_put(f->how,
		   "%s in %s %s, kept through later passes without gradients, and what was "
		   "made of all of them. No graph took them. Whether a later pass reads them is "
		   "not recorded",
		   B(f->bytes), MANY(f->blocks, "block"), a->when);
}

/* Lists only of whole runs: later a graph may take them (oom/ finds what a refused run has
 * gathered). Sums of refused ones, too. */
void advise_gathered(struct advise *a)
{
	uint32_t *last = last_results(a);
	struct line_plans found = { 0 }, lines = { 0 };
	struct map summed = { 0 }; /* passes */
	struct advised largest = { 0 };

	ADVISE_EACH (a, FORWARD_RESULTS, l)
		if (is_sum(a, &l)) {
			largest = l.size > largest.size ? l : largest;
			map_put(&summed, l.born->forwards, NULL);
			map_put(&summed, l.born->forwards - 1, NULL); /* the first has none yet */
		} else if (is_result(a, last, &l) && is_gathered(a, &l)) {
			lines_without(&found, a, &l, l.from);
		}
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		uint64_t next = advise_next_pass(a, &l);

		if (is_sum(a, &l))
			lines_without(&lines, a, &l, l.from);
		else if (!is_result(a, last, &l))
			continue;
		else if (lines_of(&found, a, &l)->blocks >= FEWEST)
			lines_without(&lines, a, &l, next);
		else if (map_get(&summed, l.born->forwards))
			plan_without(&lines_of(&lines, a, &largest)->plan, next, l.until, l.size);
	}
	without_whole(&lines, a);
	say_gathered(a, lines_add_all(&lines, a, "gathered"));
	lines_free(&found);
	map_free(&summed);
	free(last);
}
