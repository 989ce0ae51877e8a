/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes alive at the compared moments by module and by line, the greatest change first. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff.h"

/* Equal changes are ordered by name for modules, and by first pair for lines. */
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

/* One key for all pairs of one class and line, independent of the callers. */
static uint64_t line_key(const struct diff *d, const struct diff_pair *p,
			 const struct diff_site *site)
{
	const struct diff_side *side = site == p->new_site ? &d->new : &d->old;
	const struct diff_place *inner = diff_innermost(side, site);
	unsigned category = d->no_classes ? 0 : p->category;
	uint64_t h = map_hash(inner != NULL, &category, sizeof(category));

	return inner ? map_hash(h, &inner->common, sizeof(inner->common))
		     : map_hash_text(h, site->owner.function);
}

static void add_old(struct diff_group *g, const struct diff_pair *p)
{
	g->old_site = g->old_site ? g->old_site : p->old_site;
	g->bytes_old += p->bytes_old;
	g->blocks_old += p->blocks_old;
}

static void add_new(struct diff_group *g, const struct diff_pair *p)
{
	g->new_site = g->new_site ? g->new_site : p->new_site;
	g->bytes_new += p->bytes_new;
	g->blocks_new += p->blocks_new;
}

/* The groups so far, and an index by key. */
struct grouping {
	struct diff_groups out;
	struct map known;
	enum diff_by by;
};

static struct diff_group *group_of(struct grouping *g, const struct diff *d,
				   const struct diff_pair *p, const struct diff_site *site)
{
	const char *module = g->by == DIFF_BY_MODULE ? site->module : "";
	uint64_t key = g->by == DIFF_BY_MODULE ? map_hash_text(0, module) : line_key(d, p, site);
	uint32_t at;

	if (g->by == DIFF_BY_MODULE && !module[0])
		return NULL;
	at = map_number(&g->known, key, g->out.count);
	if (at == g->out.count)
		*need_item(g->out.items, g->out.count, g->out.room) = (struct diff_group){
			.module = module, .category = p->category, .order = at
		};
	return &g->out.items[at];
}

/* Adds each side's bytes to the group of that side's path. */
static void add_pair(struct grouping *g, const struct diff *d, const struct diff_pair *p)
{
	struct diff_group *x;

	if (p->new_site && (x = group_of(g, d, p, p->new_site)))
		add_new(x, p);
	if (p->old_site && (x = group_of(g, d, p, p->old_site)))
		add_old(x, p);
}

struct diff_groups diff_group(const struct diff *d, enum diff_by by)
{
	struct grouping g = { .by = by };

	for (size_t i = 0; i < d->pair_count; i++)
		add_pair(&g, d, &d->pairs[i]);
	map_free(&g.known);
	if (g.out.count)
		qsort(g.out.items, g.out.count, sizeof(*g.out.items), by_change);
	return g.out;
}

void diff_groups_free(struct diff_groups *g)
{
	free(g->items);
}

const struct owner *diff_group_owner(const struct diff_group *g)
{
	return g->new_site ? &g->new_site->owner : &g->old_site->owner;
}
