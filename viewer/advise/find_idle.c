/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that whole phases do not use between two uses: weights that no optimizer updates (a
 * reference, a teacher, averaged weights), and gradients that live through a forward pass
 * because they are zeroed or belong to another network. The plan removes each from the end of
 * the phase that used it to the begin of the next phase that does. After the last use, and
 * before a refusal, only phases count whose kind lay between two uses before.
 */
#include "../base/arithmetic.h"
#include "advise.h"

struct idle {
	uint64_t used;	 /* end of the phase of its last use */
	bool added;	 /* the last use was by a backward node */
	unsigned passed; /* bits of the phases that did not use it so far */
};

struct search {
	struct advise *advise;
	struct finding *finding;
	bool gradients;
	MAP_OF(struct idle) lives;
};

/* A trained weight requires grad as a leaf, or graphs save it. */
static bool is_trained(const struct advise *a, const struct advised *l)
{
	return l->wanted || l->course->saved || advise_leaf(a, l);
}

/* A gradient outside of CUDA graphs' pools. A CUDA graph writes to fixed addresses, which must
 * stay. */
static bool is_gradient(const struct advise *a, const struct advised *l)
{
	return advise_tags(a, l) & BLOCK_GRAD &&
	       !lives_facts(a->lives, lives_at(a->lives, l->life)).pool;
}

/* Index of the first span that ends after the event. */
static size_t span_behind(const struct advise *a, uint64_t seq)
{
	const struct spans *s = &a->timeline->model.spans;
	size_t next = advise_spans_begun(a, seq);

	return next && s->items[next - 1].extent.last_seq >= seq ? next - 1 : next;
}

/* Bits of the phases in the gap. *least: the part of it that is idle at least, from the first
 * backward pass to the end of the last backward pass or optimizer's step. */
static unsigned phases_in(const struct search *s, uint64_t from, uint64_t until, uint64_t least[2])
{
	const struct spans *all = &s->advise->timeline->model.spans;
	unsigned passed = 0;

	least[0] = PLAN_END;
	least[1] = 0;
	for (size_t i = span_behind(s->advise, from);
	     i < all->count && all->items[i].extent.first_seq < until; i++) {
		const struct span *x = &all->items[i];

		passed |= 1u << x->phase;
		if (x->phase != PHASE_BACKWARD && x->phase != PHASE_OPTIMIZER)
			continue;
		least[0] = arithmetic_least(least[0], x->extent.first_seq);
		least[1] = arithmetic_least(x->extent.last_seq + 1, until);
	}
	return passed;
}

/* Between micro-batches a gradient waits for the next one to be added and is not idle. */
static bool is_idle(const struct search *s, const struct idle *idle, unsigned passed)
{
	return !s->gradients ||
	       (passed & 1u << PHASE_FORWARD && (!idle->added || passed & 1u << PHASE_OPTIMIZER));
}

static void take_gap(struct search *s, const struct advised *l, struct idle *idle, uint64_t until)
{
	const struct advise *a = s->advise;
	struct finding *f = s->finding;
	uint64_t least[2];
	unsigned passed;

	if (idle->used >= until)
		return;
	passed = phases_in(s, idle->used, until, least);
	if (!is_idle(s, idle, passed))
		return;
	idle->passed |= passed;
	l->course->shortened |= s->gradients;
	plan_without(&f->plan, l->life, idle->used, until, l->size);
	if (f->range && least[0] < least[1])
		plan_without(&f->cautious, l->life, least[0], least[1], l->size);
	if (idle->used > a->peak_seq || a->peak_seq >= until)
		return;
	f->bytes += l->size;
	f->blocks++;
	if (f->range)
		advise_name(s->advise, f, l);
}

static void note_use(struct search *s, uint32_t life, uint32_t work)
{
	const struct spans *all = &s->advise->timeline->model.spans;
	const struct uses *u = &s->advise->timeline->model.uses;
	uint64_t seq = uses_work(u, work)->seq;
	struct idle *idle = map_find(&s->lives, life);
	struct advised l;
	size_t at;
	bool inside;

	if (!idle || !advise_life(s->advise, life, UINT16_MAX, &l))
		return;
	at = span_behind(s->advise, seq);
	inside = at < all->count && all->items[at].extent.first_seq <= seq;
	/* a gradient arrives in the middle of the backward pass */
	if (idle->used)
		take_gap(s, &l, idle,
			 inside && !s->gradients ? all->items[at].extent.first_seq : seq);
	idle->used = (inside ? all->items[at].extent.last_seq : seq) + 1;
	idle->added = uses_kind(u, work)->node;
}

static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	for (size_t i = 0; i < count; i++)
		note_use(ctx, lives[i], work);
}

/* The gap after the last use counts if the next phase is of a kind that did not use the block
 * before, or of one in which it is never used (unused_in). For a refusal that phase is the one of
 * the request. */
static void take_last_gaps(struct search *s, unsigned unused_in)
{
	const struct advise *a = s->advise;
	const struct model *m = &a->timeline->model;
	struct block_uses x;

	ADVISE_EACH (a, UINT16_MAX, l) {
		struct idle *idle = map_find(&s->lives, l.life);
		uint64_t from = idle ? idle->used : 0;
		size_t at = span_behind(a, a->wanted_count ? a->until : from);

		if (!from || at >= m->spans.count ||
		    !((idle->passed | unused_in) >> m->spans.items[at].phase & 1))
			continue;
		uses_of(m, l.life, &x);
		if (a->wanted_count || uses_waits(m, &x.works, l.until))
			take_gap(s, &l, idle, l.until);
	}
}

static void watch(struct search *s, const struct advised *l)
{
	map_item(&s->lives, l->life)->used = 0;
	l->course->watched = true;
}

static void find_gaps(struct search *s, unsigned unused_in)
{
	advise_watched_works(s->advise, note_work, s);
	if (s->lives.count)
		take_last_gaps(s, unused_in);
	map_items_free(&s->lives);
}

/* No pass uses it, and no kernel of the script after the one that made it: a checkpoint that was
 * loaded and copied into the model, or one that is copied to be stored. */
static bool is_only_copied(const struct advise *a, const struct advised *l)
{
	struct block_uses x;

	uses_of(&a->timeline->model, l->life, &x);
	return !l->course->passed && (l->course->shortened || l->course->computed <= x.first_seq ||
				      model_signs(&a->timeline->model, l->stack) & STACK_LOAD);
}

void advise_idle_weights(struct advise *a)
{
	struct search s = { .advise = a, .finding = advise_add(a, "idle_weights") };

	s.finding->range = true;
	if (advise_in_shards(a))
		return;
	ADVISE_EACH (a, CLASS_BIT(parameters), l)
		if (!is_trained(a, &l) && !is_only_copied(a, &l))
			watch(&s, &l);
	find_gaps(&s, 0);
}

void advise_set_to_none(struct advise *a)
{
	struct search s = { .advise = a,
			    .finding = advise_add(a, "set_to_none"),
			    .gradients = true };

	if (!advise_knows_steps(a))
		return;
	ADVISE_EACH (a, CLASS_BIT(gradients), l)
		if (is_gradient(a, &l))
			watch(&s, &l);
	find_gaps(&s, 1u << PHASE_FORWARD | 1u << PHASE_EVALUATION);
}
