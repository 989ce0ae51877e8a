/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits of all positions of a prompt, in a pass without gradients, of which only the last
 * position is read: while they are alive only tensors of the size of a few rows are made. A
 * tensor with one number for each position (the tokens chosen there) shows that all positions
 * are read.
 */

#include "advise.h"

enum { PART = 64, LEAST_ROW = 8 << 10, LOOK_BACK = 4096, LEAST_TOKENS = 1024 };

/* Number of tokens, from the latest input before the pass with 8 bytes each; 0 = none. */
static uint64_t tokens_of(const struct advise *a, const struct advised *logits)
{
	struct advised l;

	for (uint32_t i = 1; i <= LOOK_BACK && i <= logits->life; i++)
		if (advise_life(a, logits->life - i, CLASS_BIT(inputs), &l) &&
		    l.from < logits->from && logits->from < l.until && l.size >= 512)
			return l.size / sizeof(int64_t);
	return 0;
}

static bool is_logits(struct advise *a, const struct advised *l)
{
	return l->size >= SCORES_MIN && !l->wanted && l->born->stage == STAGE_FORWARD &&
	       !l->course->saved && ops_is_product(ops_find(a, l)->name);
}

/* In its pass only single rows of it are made, and no tensor with one number or more for each
 * token. */
static bool is_read_by_rows(const struct advise *a, const struct advised *logits)
{
	uint64_t tokens = tokens_of(a, logits);
	bool rows = false;
	struct advised l;

	if (tokens < LEAST_TOKENS || logits->size / tokens < LEAST_ROW ||
	    (a->open && logits->until == PLAN_END))
		return false;
	for (uint32_t i = logits->life + 1; i < a->lives->rows.count; i++) {
		if (!advise_life(a, i, (unsigned)~CLASS_BIT(inputs), &l))
			continue; /* excluded, because it might be the next prompt */
		if (l.from >= logits->until || l.born->forwards != logits->born->forwards)
			break;
		if (l.size > logits->size / PART ||
		    (l.size >= tokens && l.size <= tokens * 2 * sizeof(int64_t)))
			return false;
		if (l.size >= LEAST_ROW && l.born->stage == STAGE_OUTSIDE)
			rows = true;
	}
	return rows;
}

/* Reports lines whose products are always read by rows. A refused product is judged by earlier
 * passes. */
void advise_prompt_logits(struct advise *a)
{
	/* of products: blocks counts those of a line, bytes those that are read by rows */
	struct line_plans products = { 0 }, lines = { 0 };

	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		struct line_plan *line = is_logits(a, &l) ? lines_of(&products, a, &l) : NULL;

		if (line) {
			line->blocks++;
			line->bytes += is_read_by_rows(a, &l);
		}
	}
	ADVISE_EACH (a, CLASSES_THAT(ARE_OF_FORWARD), l) {
		const struct line_plan *line =
			l.size >= SCORES_MIN ? lines_of(&products, a, &l) : NULL;

		if (line && line->blocks && line->bytes == line->blocks &&
		    ops_is_product(ops_find(a, &l)->name))
			lines_without(&lines, a, &l, l.from);
	}
	lines_add_all(&lines, a, "prompt_logits");
	lines_free(&products);
}
