/* SPDX-License-Identifier: Apache-2.0 */
#include "advise.h"

struct line_plan *lines_of(struct line_plans *p, struct advise *a, const struct advised *l)
{
	struct owner owner;
	struct block b;
	uint32_t *at;
	bool fresh;

	advise_block(a, l, &b);
	at = map_put(&p->ids, (uint64_t)b.stack << 32 | b.name, &fresh);
	if (!fresh)
		return &p->items[*at];
	owner = owners_find(&a->timeline->owners, &b);
	for (*at = 0; *at < p->count; ++*at)
		if (owners_same(&p->items[*at].owner, &owner))
			return &p->items[*at];
	*need_item(p->items, p->count, p->room) = (struct line_plan){ .owner = owner };
	return &p->items[p->count - 1];
}

void lines_without(struct line_plans *p, struct advise *a, const struct advised *l, uint64_t from)
{
	struct line_plan *line = lines_of(p, a, l);

	plan_without(&line->plan, l->life, from, l->until, l->size);
	l->course->shortened = true;
	if (from > a->peak_seq || !advise_counts(a, l))
		return;
	line->bytes += l->size;
	line->blocks++;
}

static void add_plan(struct life_plan *to, const struct life_plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		plan_add(to, p->items[i]);
}

void lines_free(struct line_plans *p)
{
	FOR_EACH (struct line_plan, x, p->items, p->count) {
		plan_free(&x->plan);
		plan_free(&x->cautious);
	}
	map_free(&p->ids);
	free(p->items);
}

struct finding *lines_add_all(struct line_plans *p, struct advise *a, const char *kind)
{
	struct line_plan *largest = GREATEST_OF(x, p->items, p->count, x->bytes, x->bytes);
	struct finding *f = advise_add(a, kind);

	if (largest) {
		f->owner = largest->owner;
		f->others = SUM_OF(x, p->items, p->count, x->bytes > 0) > 1;
		f->range = f->others;
		FOR_EACH (const struct line_plan, x, p->items, p->count) {
			if (!x->bytes)
				continue;
			add_plan(&f->plan, &x->plan);
			add_plan(&f->cautious, &x->cautious);
			f->bytes += x->bytes;
			f->blocks += x->blocks;
		}
		if (!f->cautious.count)
			add_plan(&f->cautious, &largest->plan);
	}
	lines_free(p);
	return f;
}
