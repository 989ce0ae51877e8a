/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lived on the two sides, paired: first by the whole call path, then by ever less of it, for
 * what is left over. Rows of the last two levels only pair if they are also as large: a moved
 * function makes no difference. Where classes cannot be compared a pair is of a line, whatever
 * the classes.
 */

#include "../base/need.h"
#include "diff.h"

enum level {
	NO_LINE, /* all of it one pair, where backward nodes have no names */
	WHOLE_PATH,
	LINE_AND_CALL,
	LINE,
	FUNCTION_AND_CALL,
	CALL_AND_SIZE,
	SIZE,
	LEVELS
};

/* What stands for such a pair. */
static const struct diff_site no_line = { .outer = "",
					  .op = "",
					  .module = "",
					  .owner = { .function = "the backward pass and libraries",
						     .file = "" },
					  .caller = { .function = "", .file = "" } };

static uint64_t key_of(const struct diff *d, const struct diff_side *s, const struct diff_row *row,
		       enum level level)
{
	const struct diff_site *site = &s->sites[row->site];
	unsigned category = d->no_classes ? 0 : row->category;
	uint64_t h = map_hash(level, &category, sizeof(category));
	const struct diff_place *inner = diff_innermost(s, site);

	if (level == NO_LINE)
		return h;
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

static bool takes_part(const struct diff_side *s, const struct diff_row *row, enum level level)
{
	return !row->pair && (level != NO_LINE || !diff_innermost(s, &s->sites[row->site]));
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
		uint32_t *at =
			takes_part(s, row, level) ? map_get(pairs, key_of(d, s, row, level)) : NULL;

		if (!at || !*at)
			continue;
		row->pair = *at;
		join_sites(&d->pairs[*at - 1], s, row, s == &d->old);
		if (level == NO_LINE)
			*(s == &d->old ? &d->pairs[*at - 1].old_site
				       : &d->pairs[*at - 1].new_site) = &no_line;
	}
}

/* A key of the old side is 0 in the map until a row of the new side has it too. */
static void pair_level(struct diff *d, enum level level)
{
	struct map keys = { 0 };

	for (size_t i = 0; i < d->old.shot.count; i++)
		if (takes_part(&d->old, &d->old.shot.rows[i], level))
			map_put(&keys, key_of(d, &d->old, &d->old.shot.rows[i], level), NULL);
	for (size_t i = 0; i < d->new.shot.count; i++) {
		const struct diff_row *row = &d->new.shot.rows[i];
		uint32_t *at = takes_part(&d->new, row, level)
				       ? map_get(&keys, key_of(d, &d->new, row, level))
				       : NULL;

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
	for (int level = d->no_nodes ? NO_LINE : WHOLE_PATH; level < LEVELS; level++)
		pair_level(d, level);
	leftovers(d, &d->old);
	leftovers(d, &d->new);
}
