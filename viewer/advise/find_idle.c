/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that no optimizer updates and that whole phases pass by (a reference, a teacher, an
 * average of the weights): each is gone from the end of the phase that used it to the beginning of
 * the next one that does. Behind the last use, or before a refusal, a phase of a kind that came
 * between uses before passes it by, or nothing is said of it.
 */
#include "../base/arithmetic.h"
#include "advise.h"

struct idle {
	uint64_t used;	 /* the end of the phase that used it last */
	unsigned phases; /* a bit for each kind that passed it by */
};

struct search {
	struct advise *advise;
	struct finding *finding;
	MAP_OF(struct idle) lives;
};

/* A graph that is trained asks its leaves for gradients and takes its weights. */
static bool is_trained(const struct advise *a, const struct advised *l)
{
	return l->life >= a->lives->rows.count || a->saved[l->life] || advise_leaf(a, l);
}

/* The first span that ends behind the event. */
static size_t span_behind(const struct spans *s, uint64_t seq)
{
	size_t next =
		s->count ? extents_begun(&s->items->extent, sizeof(*s->items), s->count, seq) : 0;

	return next && s->items[next - 1].extent.last_seq >= seq ? next - 1 : next;
}

/* From the first backward pass of the gap to the end of its last one, or of the optimizer's step:
 * the least that is gone. */
static void plan_cautious(struct search *s, const struct advised *l, uint64_t from, uint64_t until,
			  struct idle *idle)
{
	const struct spans *all = &s->advise->timeline->model.spans;
	uint64_t first = PLAN_END, last = 0;

	for (size_t i = span_behind(all, from);
	     i < all->count && all->items[i].extent.first_seq < until; i++) {
		const struct span *x = &all->items[i];

		idle->phases |= 1u << x->phase;
		if (x->phase != PHASE_BACKWARD && x->phase != PHASE_OPTIMIZER)
			continue;
		first = arithmetic_least(first, x->extent.first_seq);
		last = arithmetic_least(x->extent.last_seq + 1, until);
	}
	if (first < last)
		plan_without(&s->finding->cautious, first, last, l->size);
}

static void take_gap(struct search *s, const struct advised *l, struct idle *idle, uint64_t until)
{
	const struct advise *a = s->advise;

	if (idle->used >= until)
		return;
	plan_without(&s->finding->plan, idle->used, until, l->size);
	plan_cautious(s, l, idle->used, until, idle);
	if (idle->used > a->peak_seq || a->peak_seq >= until)
		return;
	s->finding->bytes += l->size;
	s->finding->blocks++;
	advise_name(s->advise, s->finding, l);
}

static void note_use(struct search *s, uint32_t life, uint64_t seq)
{
	const struct spans *all = &s->advise->timeline->model.spans;
	struct idle *idle = map_find(&s->lives, life);
	size_t at = span_behind(all, seq);
	bool inside = at < all->count && all->items[at].extent.first_seq <= seq;
	struct advised l;

	if (!idle || !advise_life(s->advise, life, UINT16_MAX, &l))
		return;
	if (idle->used)
		take_gap(s, &l, idle, inside ? all->items[at].extent.first_seq : seq);
	idle->used = (inside ? all->items[at].extent.last_seq : seq) + 1;
}

static void read_uses(struct search *s)
{
	const struct uses *u = &s->advise->timeline->model.uses;
	struct uses_cursor c;

	for (uses_first(&c, u); uses_next(&c) && uses_work(u, c.work)->seq < s->advise->until;)
		for (uint32_t i = 0; i < c.count; i++)
			note_use(s, c.lives[i], uses_work(u, c.work)->seq);
}

/* No graph will compute again what it has not saved, nor a Function's backward pass take a weight.
 */
static bool is_plain(const struct advise *a)
{
	bool plain = true;

	ADVISE_EACH (a, UINT16_MAX, l)
		plain &= l.born->stage != STAGE_RECOMPUTE &&
			 !(model_signs(&a->timeline->model, l.stack) & STACK_FUNCTION);
	return plain;
}

/* Behind the last use comes a phase of a kind that passed it by before, or that takes no weight
 * which no graph saved; or what is asked for comes in such a phase. */
static void take_last_gaps(struct search *s)
{
	const struct advise *a = s->advise;
	const struct model *m = &a->timeline->model;
	unsigned plain = is_plain(a) ? 1u << PHASE_BACKWARD | 1u << PHASE_OPTIMIZER : 0;
	struct block_uses x;

	ADVISE_EACH (a, CLASS_BIT(parameters), l) {
		struct idle *idle = map_find(&s->lives, l.life);
		uint64_t from = idle ? idle->used : 0;
		size_t at = span_behind(&m->spans, a->wanted_count ? a->until : from);

		uses_of(m, l.life, &x);
		if (from && at < m->spans.count &&
		    (idle->phases | plain) >> m->spans.items[at].phase & 1 &&
		    (a->wanted_count || uses_waits(m, &x.works, l.until)))
			take_gap(s, &l, idle, l.until);
	}
}

void advise_idle_weights(struct advise *a)
{
	struct search s = { .advise = a };
	struct finding *f;

	if (!uses_complete(&a->timeline->model) || advise_in_shards(a))
		return;
	ADVISE_EACH (a, CLASS_BIT(parameters), l)
		if (!is_trained(a, &l))
			map_item(&s.lives, l.life)->used = 0;
	f = s.finding = advise_add(a, "idle_weights");
	f->range = true;
	if (s.lives.count)
		read_uses(&s);
	take_last_gaps(&s);
	map_items_free(&s.lives);
	advise_put(f->how,
		   "%s of weights in %s %s that get no gradient and that nothing uses in whole "
		   "passes or optimizer's steps. They are copied to the device once a step. The "
		   "saving is lower if they stay until backward and come back before the "
		   "optimizer's step ends",
		   B(f->bytes), MANY(f->blocks, "block"), a->when);
}
