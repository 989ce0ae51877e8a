/* SPDX-License-Identifier: Apache-2.0 */
/* Who held the memory when it ran out: by class and line, what is left from earlier steps, and the
 * few blocks that stand out among what the passes made. */
#include "oom.h"

#define LATEST (1u << 16) /* lives: what a line does shows in so many before a refusal */

/* Made in a step, but in an earlier one, or pass, than that which ran out of memory. */
static bool is_old(const struct oom *o, const struct block *b)
{
	const struct step *steps = o->timeline->steps.items;

	return o->step > 1 && b->seq >= steps[1].extent.first_seq && b->seq < o->since;
}

/* Gradients add up over the passes of a step, and state stays. */
static bool may_grow(enum category c)
{
	return c != CATEGORY_gradients && c != CATEGORY_optimizer_state;
}

/* Of what is left from earlier steps: the line that grows, or that the passes left most of. */
const struct holder *oom_grown_most(const struct oom *o)
{
	const struct holder *best = NULL;

	for (size_t i = 0; i < o->holders.count; i++) {
		const struct holder *h = &o->holders.items[i];
		bool counts = o->by_pass
				      ? oom_is_passing(h->category)
				      : may_grow(h->category) &&
						leaks_at(&o->leaks, 1u << h->category, &h->owner);

		if (h->before && counts && (!best || h->before > best->before))
			best = h;
	}
	return best;
}

/* Graphs, what they hold of the inputs, and what modules returned. */
static bool is_of_graph(const struct model *m, const struct block *b, enum category c)
{
	return c == CATEGORY_activations || (oom_is_passing(c) && b->state & LIFE_SAVED) ||
	       (c == CATEGORY_forward_temporaries && model_signs(m, b->stack) & STACK_FORWARD);
}

static bool is_result(enum category c)
{
	return c == CATEGORY_activations || c == CATEGORY_forward_temporaries;
}

/* Where few steps were seen, what is there of an earlier one may go in the next. */
static void add_growth(struct oom *o, const struct block *b, enum category c,
		       const struct owner *owner)
{
	if (o->by_pass ? !oom_is_passing(c) : !may_grow(c) || !leaks_at(&o->leaks, 1u << c, owner))
		return;
	o->grown += b->size;
	if (is_of_graph(o->shot.model, b, c))
		o->grown_graph += b->size;
	if (is_result(c) && model_born(o->shot.model, b)->stage <= STAGE_FORWARD &&
	    b->seq > o->root.seq)
		o->root = *b;
}

static void collect(struct oom *o)
{
	struct snapshot *s = &o->shot;

	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		enum category c = s->classes[i];
		struct owner owner = owners_find(&o->timeline->owners, b);
		struct holder *h = holders_add(
			&o->holders, (struct holder){ .category = c, .owner = owner }, b->size);

		if (b->seq >= o->begin && b->seq >= o->attempts.from &&
		    oom_grows_with_batch(o, b, c, model_born(s->model, b)->stage))
			o->current += b->size;
		if (!is_old(o, b))
			continue;
		h->before += b->size;
		add_growth(o, b, c, &owner);
	}
	holders_sort(&o->holders);
}

static bool wanted_by_pass(const struct oom *o)
{
	return o->phase != PHASE_OPTIMIZER && !(o->wanted_signs & STACK_PARAM) &&
	       (oom_is_passing(o->wanted_category) || o->wanted_stage == STAGE_FORWARD ||
		o->wanted_stage == STAGE_BACKWARD || o->wanted_stage == STAGE_RECOMPUTE);
}

static bool is_computed(enum category c)
{
	return oom_is_passing(c) && c != CATEGORY_inputs && c != CATEGORY_kv_cache;
}

static void find_largest(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	if (wanted_by_pass(o)) {
		p->largest = p->bytes = o->block;
		p->count = 1;
		p->owner = o->wanted_owner;
	}
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (!is_computed(o->shot.classes[i]) || b->size <= p->largest)
			continue;
		p->largest = b->size;
		p->owner = owners_find(&o->timeline->owners, b);
	}
	if (p->count && p->bytes < p->largest / 2)
		p->bytes = p->count = 0;
}

/* No graph takes what is made there: it took nothing that was made there before and is gone; or
 * never anything, in two calls of a model or more. */
static bool is_never_saved(const struct oom *o, uint32_t stack)
{
	const struct lives *l = &o->timeline->model.lives;
	const struct spans *s = &o->timeline->model.spans;
	uint32_t n = lives_born_by(l, o->refusal.event.seq);
	bool gone = s->forwards > 1 && !s->tags;

	for (uint32_t i = n; i-- > 0 && n - i < LATEST;) {
		const struct life *life = lives_at(l, i);

		if (lives_request(l, life)->stack != stack)
			continue;
		if (lives_facts(l, life).save_ns)
			return false;
		gone |= life->died.position && lives_seq(l, &life->died) < o->refusal.event.seq;
	}
	return gone;
}

/* Half as large as the largest, or more, belongs to it: a copy, a gradient, another precision. */
static void find_spike(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	find_largest(o);
	p->unsaved = p->bytes && is_never_saved(o, o->wanted.stack) ? o->block : 0;
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (!is_computed(o->shot.classes[i]))
			continue;
		if (b->size >= p->largest / 2) {
			p->bytes += b->size;
			p->unsaved += is_never_saved(o, b->stack) ? b->size : 0;
			p->count++;
		} else if (b->size >= p->largest / 10000) {
			p->next = b->size > p->next ? b->size : p->next;
			p->others++;
		}
	}
}

void oom_holders(struct oom *o)
{
	collect(o);
	find_spike(o);
}
