/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that a script collects and no later pass reads: a list of predictions with one tensor
 * of all at the end, or a tensor that grows with each pass.
 */

#include "advise.h"

/* The fewest passes that a result outlives, results of a line, and growths of a sum. */
enum { PASSES = 3, FEWEST = 3, GROWTHS = 4 };

/* The event since which no pass or optimizer's step uses it. */
static uint64_t passed_since(const struct advise *a, const struct advised *l)
{
	uint64_t next = advise_next_pass(a, l), used = l->course->passed;

	return used > next ? used : next;
}

/* The script keeps it beyond its pass and the backward pass of that. */
static bool is_result(const struct advise *a, const struct advised *l)
{
	uint64_t since = passed_since(a, l), saved = l->course->saved;

	return !a->open && l->born->forwards && since < l->until &&
	       (!saved || (saved < advise_next_pass(a, l) && advise_held(a, l)));
}

/* The script reads it once more later, and no backward pass goes through the result of that. */
static bool is_read_later(const struct advise *a, const struct advised *l)
{
	const struct advise_pass *pass = &a->passes.items[l->born->forwards];
	struct block_uses x;

	uses_of(&a->timeline->model, l->life, &x);
	return x.last_seq > passed_since(a, l) && !l->course->often &&
	       (!pass->kept || (pass->walked && pass->walked < x.last_seq));
}

/* It lives through several passes. A loop variable would hold it only until the next pass. */
static bool is_gathered(const struct advise *a, const struct advised *l)
{
	uint32_t all = a->timeline->model.spans.forwards;

	return is_read_later(a, l) &&
	       (l->until == PLAN_END ? all : l->died->forwards) >= l->born->forwards + PASSES;
}

static bool is_of_sums(const struct advise *a, const struct advised *l)
{
	const uint32_t *times = map_get(&a->sums, l->stack);

	return times && *times >= GROWTHS;
}

/* A tensor of all results so far, which no pass uses. */
static bool is_sum(const struct advise *a, const struct advised *l)
{
	return is_of_sums(a, l) && !l->wanted && !l->course->passed && !l->course->saved;
}

/* The tensor of all results, made after the last pass, would be on the host, too. If a graph saves
 * it, the line is left out. */
static void without_whole(struct line_plans *lines, struct advise *a)
{
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		if (l.born->stage != STAGE_OUTSIDE || is_of_sums(a, &l))
			continue;
		FOR_EACH (struct line_plan, line, lines->items, lines->count) {
			if (l.size < line->bytes / 10 * 9 || l.size > line->bytes / 10 * 11)
				continue;
			if (l.course->saved)
				line->bytes = 0;
			else
				plan_without(&line->plan, l.life, l.from, l.until, l.size);
		}
	}
}

/* Lists are judged for whole runs only, because in a run that died a graph might have saved them
 * later (oom/ judges those). Growing tensors are judged for both. */
void advise_gathered(struct advise *a)
{
	struct line_plans found = { 0 }, lines = { 0 };
	struct map summed = { 0 }; /* numbers of passes with a sum */
	struct advised largest = { 0 };

	ADVISE_EACH (a, FORWARD_RESULTS, l)
		if (is_sum(a, &l)) {
			largest = l.size > largest.size ? l : largest;
			map_put(&summed, l.born->forwards, NULL);
			map_put(&summed, l.born->forwards - 1,
				NULL); /* the first pass has no sum yet */
		} else if (is_result(a, &l) && is_gathered(a, &l)) {
			lines_without(&found, a, &l, l.from);
		}
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		uint64_t next = passed_since(a, &l);

		if (is_sum(a, &l))
			lines_without(&lines, a, &l, l.from);
		else if (!is_result(a, &l))
			continue;
		else if (lines_of(&found, a, &l)->blocks >= FEWEST)
			lines_without(&lines, a, &l, next);
		else if (map_get(&summed, l.born->forwards))
			plan_without(&lines_of(&lines, a, &largest)->plan, l.life, next, l.until,
				     l.size);
	}
	without_whole(&lines, a);
	lines_add_all(&lines, a, "gathered");
	lines_free(&found);
	map_free(&summed);
}
