/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of weights in autocast's cache. The operator that needs a copy, or its graph, uses it. A
 * copy that no graph ever held, or that is alive when the next pass begins, is held by the
 * cache, which is cleared when the outermost autocast context ends.
 */

#include "advise.h"

enum {
	SOON = 2,
	LATER = 6
}; /* the operator has most likely, or surely, ended after so many further blocks */

bool advise_is_by_autocast(struct timeline *t, const struct block *b)
{
	return stacks_have(&t->stacks, b->stack, b->seq, "autocast::cached_cast");
}

bool advise_is_cast(struct timeline *t, struct map *known, uint32_t stack, uint64_t seq)
{
	const struct block b = { .stack = stack, .seq = seq };
	bool fresh = false;
	uint32_t *is = stack ? map_put(known, stack, &fresh) : NULL;

	if (fresh) /* native names of a stack are looked up once */
		*is = advise_is_by_autocast(t, &b);
	return is && *is;
}

/* The event since which only the cache holds it. PLAN_END: an operator or a graph might. */
static uint64_t cached_since(const struct advise *a, const struct advised *l)
{
	uint64_t since = l->course->released ? l->course->released : l->from;
	bool stays = advise_pass_end(a, l->born->forwards) < l->until;
	bool of_no_graph = a->timeline->model.tags && !l->course->saved;

	return (stays || of_no_graph) && !advise_in_graph(l) ? since : PLAN_END;
}

/* The later of `since` and the birth of the n-th block after it. */
static uint64_t done_at(const struct advise *a, const struct advised *l, uint64_t since,
			uint32_t blocks)
{
	uint32_t life = l->life + blocks;
	uint64_t done = life < a->lives->rows.count ? lives_read(a->lives, life).from : PLAN_END;

	return since > done ? since : done;
}

void advise_cached_casts(struct advise *a)
{
	uint64_t first = PLAN_END, last = 0;
	struct finding *f = advise_add(a, "autocast_cache");

	f->range = true;
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		uint64_t since;

		if (l.wanted)
			continue;
		since = cached_since(a, &l);
		if (since == PLAN_END || !advise_is_cast(a->timeline, &a->casts, l.stack, l.from))
			continue;
		advise_without(a, f, &l, done_at(a, &l, since, SOON));
		plan_without(&f->cautious, l.life, done_at(a, &l, since, LATER), l.until, l.size);
		first = first < since ? first : since;
		last = last > l.until ? last : l.until;
		advise_name(a, f, &l);
	}
	plan_with(&f->cautious, PLAN_NONE, first, last, f->largest);
}
