/* SPDX-License-Identifier: Apache-2.0 */
/* What lived at the compared moments by module and by line, the greatest change first. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff.h"

/* Of equal changes modules stand by their names, lines in the order of their first pairs. */
static int by_change(const void *a, const void *b)
{
	const struct diff_group *x = a, *y = b;
	uint64_t v = diff_apart(x->bytes_old, x->bytes_new);
	uint64_t w = diff_apart(y->bytes_old, y->bytes_new);
	int names = strcmp(x->module, y->module);

	if (v != w)
		return v < w ? 1 : -1;
	return names ? names : x->order < y->order ? -1 : x->order > y->order;
}

/* The same for all pairs of one class and one line, whatever led to it. */
static uint64_t line_key(const struct diff *d, const struct diff_pair *p)
{
	const struct diff_site *site = diff_site_of(p);
	const struct diff_place *inner = diff_innermost(diff_side_of(d, p), site);
	unsigned category = d->no_classes ? 0 : p->category;
	uint64_t h = map_hash(inner != NULL, &category, sizeof(category));

	return inner ? map_hash(h, &inner->common, sizeof(inner->common))
		     : map_hash_text(h, site->owner.function);
}

static void add_pair(struct diff_group *g, const struct diff_pair *p)
{
	g->old_site = g->old_site ? g->old_site : p->old_site;
	g->new_site = g->new_site ? g->new_site : p->new_site;
	g->bytes_old += p->bytes_old;
	g->bytes_new += p->bytes_new;
	g->blocks_old += p->blocks_old;
	g->blocks_new += p->blocks_new;
}

struct diff_groups diff_group(const struct diff *d, enum diff_by by)
{
	struct diff_groups out = { 0 };
	struct map known = { 0 };

	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];
		const char *module = by == DIFF_BY_MODULE ? diff_site_of(p)->module : "";
		uint64_t key = by == DIFF_BY_MODULE ? map_hash_text(0, module) : line_key(d, p);
		uint32_t at;

		if (by == DIFF_BY_MODULE && !module[0])
			continue;
		at = map_number(&known, key, out.count);
		if (at == out.count)
			*need_item(out.items, out.count, out.room) = (struct diff_group){
				.module = module, .category = p->category, .order = at
			};
		add_pair(&out.items[at], p);
	}
	map_free(&known);
	if (out.count)
		qsort(out.items, out.count, sizeof(*out.items), by_change);
	return out;
}

void diff_groups_free(struct diff_groups *g)
{
	free(g->items);
}

const struct owner *diff_group_owner(const struct diff_group *g)
{
	return g->new_site ? &g->new_site->owner : &g->old_site->owner;
}
