/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that one line of Python makes before the first pass, whoever calls it. A line that loads
 * or converts weights makes many, and not equally many of each size. Batches that wait on the
 * device come equally often in each of their sizes.
 */
#include "rules.h"
#include "thresholds.h"

static struct study_line *find_line(const struct study *st, const struct history *b)
{
	uint64_t line = b->stage == STAGE_OUTSIDE ? signs_line(&st->m->signs, b->block.stack) : 0;

	return line ? map_find(&st->lines, line) : NULL;
}

void study_lines_born(struct study *st, const struct history *b)
{
	uint64_t line;
	struct study_line *l;

	if (b->block.memory || b->stage != STAGE_OUTSIDE)
		return;
	if (!life_is_early(b)) {
		l = find_line(st, b);
		if (l)
			l->later = true;
		return;
	}
	line = signs_line(&st->m->signs, b->block.stack);
	if (!line)
		return;
	l = map_item(&st->lines, line);
	l->blocks++;
	study_count_size(&l->sizes, b->block.size, true);
}

bool study_is_of_many(const struct study *st, const struct history *b)
{
	enum { MANY = 4 };
	const struct study_line *l = life_is_early(b) ? find_line(st, b) : NULL;

	if (!l || l->later || l->blocks < MANY)
		return false;
	for (unsigned i = 1; i < STUDY_SIZES && l->sizes.of[i].blocks; i++)
		if (l->sizes.of[i].blocks != l->sizes.of[0].blocks)
			return true;
	return false;
}

bool study_is_of_layers(const struct study *st, const struct history *b)
{
	const struct study_line *l = study_is_of_many(st, b) ? find_line(st, b) : NULL;
	uint32_t alike = 0;

	for (unsigned i = 0; l && i < STUDY_SIZES; i++)
		alike += l->sizes.of[i].blocks >= LAYERS_LEAST ? l->sizes.of[i].blocks : 0;
	return l && l->blocks >= NETWORK && alike >= l->blocks / 2;
}
