/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of views that are larger than their memory: an index takes values from an expanded
 * tensor, or from its sliding windows. The node of the index makes zeros in the view's shape,
 * larger than any block before, and only their sum goes to the tensor.
 */
#include "../base/arithmetic.h"
#include "advise.h"

enum { TIMES = 4 };

struct index_op {
	const char *node, *op;
};

static const struct index_op *index_of(const char *node)
{
	static const struct index_op known[] = { { "GatherBackward0", "gather" },
						 { "IndexSelectBackward0", "index_select" },
						 { "IndexBackward0", "index_Tensor" },
						 { "TakeBackward0", "take" } };

	return FIRST_OF(x, known, sizeof(known) / sizeof(known[0]), !strcmp(x->node, node));
}

/* The line of the latest such operation before the zeros, if all of its pass come from one line. */
static bool find_line(struct advise *a, const struct advised *zeros, struct owner *line)
{
	const char *op = index_of(ops_find(a, zeros)->name)->op;
	struct advised l;
	bool found = false;

	for (uint32_t i = arithmetic_least(zeros->life, a->lives->rows.count); i-- > 0;) {
		const struct op *of;

		if (!advise_life(a, i, UINT16_MAX, &l) || stage_is_backward(l.born->stage))
			continue;
		if (l.born->forwards < zeros->born->forwards)
			break;
		of = ops_find(a, &l);
		if (strncmp(of->name, op, strlen(op)) != 0)
			continue;
		if (found && !owners_same(line, &of->owner))
			return false;
		*line = of->owner;
		found = true;
	}
	return found;
}

void advise_views(struct advise *a)
{
	struct line_plans lines = { 0 };
	struct advised largest = { 0 };
	uint64_t most = 0; /* bytes of the largest block not made by a backward node */
	struct finding *f;
	struct owner line;

	ADVISE_EACH (a, UINT16_MAX, l) {
		if (!stage_is_backward(l.born->stage)) {
			most = arithmetic_most(most, l.size);
		} else if (l.size >= SCORES_MIN && l.size / TIMES >= most &&
			   index_of(ops_find(a, &l)->name)) {
			plan_without(&lines_of(&lines, a, &l)->cautious, l.life, l.from, l.until,
				     l.size - most);
			lines_without(&lines, a, &l, l.from);
			largest = l.size > largest.size ? l : largest;
		}
	}
	f = lines_add_all(&lines, a, "expanded_views");
	f->range = true;
	if (f->bytes && find_line(a, &largest, &line))
		f->owner = line;
	f->size = most;
}
