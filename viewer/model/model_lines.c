/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one line of Python makes before the first pass, whoever calls it: a line that loads weights
 * or makes others of them makes many, of several sizes, some sizes more often than others. Batches
 * that wait on the device come as often in each of their sizes.
 */
#include "../base/need.h"
#include "model_parts.h"

static struct model_line *line_of(struct model *m, uint64_t line)
{
	bool fresh;
	uint32_t *at = map_put(&m->line_ids, line, &fresh);

	if (fresh) {
		m->lines = need_grow(m->lines, &m->line_room, m->line_count, sizeof(*m->lines));
		*at = m->line_count++;
		m->lines[*at] = (struct model_line){ 0 };
	}
	return &m->lines[*at];
}

static bool is_early(const struct history *b)
{
	return !b->born_forward && !b->born_backward;
}

static struct model_line *find_line(const struct model *m, const struct history *b)
{
	uint64_t line = b->stage == STAGE_OUTSIDE ? signs_line(&m->signs, b->block.stack) : 0;
	const uint32_t *at = line ? map_get(&m->line_ids, line) : NULL;

	return at ? &m->lines[*at] : NULL;
}

static void add(struct model_line *l, uint64_t size)
{
	unsigned i = 0;

	l->blocks++;
	while (i < MODEL_SIZES && l->sizes[i].blocks && !model_as_large(l->sizes[i].bytes, size))
		i++;
	if (i < MODEL_SIZES) {
		l->sizes[i].bytes = size;
		l->sizes[i].blocks++;
	}
}

void model_note_line(struct model *m, const struct history *b)
{
	uint64_t line;
	struct model_line *l;

	if (b->block.memory || b->stage != STAGE_OUTSIDE)
		return;
	if (!is_early(b)) {
		l = find_line(m, b);
		if (l)
			l->later = true;
		return;
	}
	line = signs_line(&m->signs, b->block.stack);
	if (line)
		add(line_of(m, line), b->block.size);
}

bool model_is_of_many(const struct model *m, const struct history *b)
{
	enum { MANY = 4 };
	const struct model_line *l = is_early(b) ? find_line(m, b) : NULL;

	if (!l || l->later || l->blocks < MANY)
		return false;
	for (unsigned i = 1; i < MODEL_SIZES && l->sizes[i].blocks; i++)
		if (l->sizes[i].blocks != l->sizes[0].blocks)
			return true;
	return false;
}

bool model_line_goes_on(const struct model *m, const struct history *b)
{
	const struct model_line *l = find_line(m, b);

	return !is_early(b) || (l && l->later);
}
