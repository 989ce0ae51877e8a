/* SPDX-License-Identifier: Apache-2.0 */
/* What lived at the compared moments by module and by line, the greatest change first. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff.h"

static int by_change(const void *a, const void *b)
{
	const struct diff_module *x = a, *y = b;
	uint64_t v = diff_apart(x->bytes_old, x->bytes_new);
	uint64_t w = diff_apart(y->bytes_old, y->bytes_new);

	if (v != w)
		return v < w ? 1 : -1;
	return strcmp(x->path, y->path);
}

static struct diff_module *module_of(struct diff_modules *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->items[i].path, path))
			return &m->items[i];
	*need_item(m->items, m->count, m->room) = (struct diff_module){ .path = path };
	return &m->items[m->count - 1];
}

struct diff_modules diff_modules(const struct diff *d)
{
	struct diff_modules m = { 0 };
	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];
		const char *path = diff_site_of(p)->module;
		struct diff_module *at = path[0] ? module_of(&m, path) : NULL;

		if (!at)
			continue;
		at->bytes_old += p->bytes_old;
		at->bytes_new += p->bytes_new;
	}
	if (m.count)
		qsort(m.items, m.count, sizeof(*m.items), by_change);
	return m;
}

void diff_modules_free(struct diff_modules *m)
{
	free(m->items);
}

/* The same for all pairs of one class and one line, whatever led to it. */
static uint64_t line_key(const struct diff *d, const struct diff_pair *p)
{
	const struct diff_site *site = diff_site_of(p);
	const struct diff_place *inner = diff_innermost(diff_side_of(d, p), site);
	uint64_t h = map_hash(inner != NULL, &p->category, sizeof(p->category));

	return inner ? map_hash(h, &inner->common, sizeof(inner->common))
		     : map_hash_text(h, site->owner.function);
}

static int by_delta(const void *a, const void *b)
{
	const struct diff_line *x = a, *y = b;
	uint64_t v = diff_apart(x->bytes_old, x->bytes_new);
	uint64_t w = diff_apart(y->bytes_old, y->bytes_new);

	if (v != w)
		return v < w ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void add_pair(struct diff_line *l, const struct diff_pair *p)
{
	l->old_site = l->old_site ? l->old_site : p->old_site;
	l->new_site = l->new_site ? l->new_site : p->new_site;
	l->bytes_old += p->bytes_old;
	l->bytes_new += p->bytes_new;
	l->blocks_old += p->blocks_old;
	l->blocks_new += p->blocks_new;
}

struct diff_lines diff_lines(const struct diff *d)
{
	struct diff_lines out = { 0 };
	struct map known = { 0 };

	for (size_t i = 0; i < d->pair_count; i++) {
		uint32_t at = map_number(&known, line_key(d, &d->pairs[i]), out.count);

		if (at == out.count)
			*need_item(out.items, out.count, out.room) =
				(struct diff_line){ .category = d->pairs[i].category, .order = at };
		add_pair(&out.items[at], &d->pairs[i]);
	}
	map_free(&known);
	if (out.count)
		qsort(out.items, out.count, sizeof(*out.items), by_delta);
	return out;
}

void diff_lines_free(struct diff_lines *l)
{
	free(l->items);
}

const struct owner *diff_line_owner(const struct diff_line *l)
{
	return l->new_site ? &l->new_site->owner : &l->old_site->owner;
}
