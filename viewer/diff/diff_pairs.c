/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lived on the two sides, paired: first by the whole call path, then by ever less of it, for
 * what is left over. Rows of the last two levels only pair if they are also as large: a moved
 * function makes no difference.
 */

#include "../base/need.h"
#include "diff.h"

enum level { WHOLE_PATH, LINE_AND_CALL, LINE, FUNCTION_AND_CALL, CALL_AND_SIZE, SIZE, LEVELS };

static uint64_t key_of(const struct diff_side *s, const struct diff_row *row, enum level level)
{
	const struct diff_site *site = &s->sites[row->site];
	uint64_t h = map_hash(level, &row->category, sizeof(row->category));
	const struct diff_place *inner = diff_innermost(s, site);

	if (level == WHOLE_PATH)
		for (unsigned i = 0; i < site->depth; i++)
			h = map_hash(h, &s->places[site->places[i]].common, sizeof(uint32_t));
	if (level == LINE_AND_CALL || level == LINE)
		h = inner ? map_hash(h, &inner->common, sizeof(inner->common)) : h;
	if (level == FUNCTION_AND_CALL && inner)
		h = map_hash(h, &s->functions[inner->function].common, sizeof(uint32_t));
	if (level >= CALL_AND_SIZE) {
		h = map_hash(h, &row->bytes, sizeof(row->bytes));
		h = map_hash(h, &row->blocks, sizeof(row->blocks));
	}
	if (level != LINE && level != SIZE)
		h = map_hash_text(h, site->op);
	return inner ? h : map_hash_text(h, site->owner.function);
}

static struct diff_pair *new_pair(struct diff *d, unsigned category)
{
	*need_item(d->pairs, d->pair_count, d->pair_room) =
		(struct diff_pair){ .category = category };
	return &d->pairs[d->pair_count - 1];
}

static void join_sites(struct diff_pair *p, const struct diff_side *s, const struct diff_row *row,
		       bool old)
{
	const struct diff_site **site = old ? &p->old_site : &p->new_site;
	uint64_t *largest = old ? &p->old_largest : &p->new_largest;

	*(old ? &p->bytes_old : &p->bytes_new) += row->bytes;
	*(old ? &p->blocks_old : &p->blocks_new) += row->blocks;
	*(old ? &p->unused_old : &p->unused_new) += row->unused;
	if (*site && row->bytes <= *largest)
		return;
	*site = &s->sites[row->site];
	*largest = row->bytes;
}

static void take_pair(struct diff *d, struct diff_side *s, const struct map *pairs,
		      enum level level)
{
	for (size_t i = 0; i < s->shot.count; i++) {
		struct diff_row *row = &s->shot.rows[i];
		uint32_t *at = row->pair ? NULL : map_get(pairs, key_of(s, row, level));

		if (!at || !*at)
			continue;
		row->pair = *at;
		join_sites(&d->pairs[*at - 1], s, row, s == &d->old);
	}
}

/* A key of the old side is 0 in the map until a row of the new side has it too. */
static void pair_level(struct diff *d, enum level level)
{
	struct map keys = { 0 };

	for (size_t i = 0; i < d->old.shot.count; i++)
		if (!d->old.shot.rows[i].pair)
			map_put(&keys, key_of(&d->old, &d->old.shot.rows[i], level), NULL);
	for (size_t i = 0; i < d->new.shot.count; i++) {
		const struct diff_row *row = &d->new.shot.rows[i];
		uint32_t *at = row->pair ? NULL : map_get(&keys, key_of(&d->new, row, level));

		if (!at || *at)
			continue;
		new_pair(d, row->category);
		*at = (uint32_t)d->pair_count;
	}
	take_pair(d, &d->old, &keys, level);
	take_pair(d, &d->new, &keys, level);
	map_free(&keys);
}

static void leftovers(struct diff *d, struct diff_side *s)
{
	for (size_t i = 0; i < s->shot.count; i++) {
		struct diff_row *row = &s->shot.rows[i];

		if (row->pair)
			continue;
		join_sites(new_pair(d, row->category), s, row, s == &d->old);
		row->pair = (uint32_t)d->pair_count;
	}
}

void diff_pair_rows(struct diff *d)
{
	diff_align(&d->old, &d->new);
	for (int level = 0; level < LEVELS; level++)
		pair_level(d, level);
	leftovers(d, &d->old);
	leftovers(d, &d->new);
}
