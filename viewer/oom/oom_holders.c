/* SPDX-License-Identifier: Apache-2.0 */
/* Who held the memory when it ran out: by class and line, what is left from earlier steps, and the
 * few blocks that stand out among what the passes made. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "oom.h"

static struct oom_holder *place(struct oom_holders *all, enum category c, const struct owner *o)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].category == c && owners_same(&all->items[i].owner, o))
			return &all->items[i];
	all->items = need_grow(all->items, &all->room, all->count, sizeof(*all->items));
	all->items[all->count] = (struct oom_holder){ .category = c, .owner = *o };
	return &all->items[all->count++];
}

static int by_bytes(const void *a, const void *b)
{
	const struct oom_holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->owner.function, y->owner.function);
}

/* Made in a step, but in an earlier one, or pass, than that which ran out of memory. */
static bool is_old(const struct oom *o, const struct block *b)
{
	const struct step *steps = o->timeline->steps.items;

	return o->step > 1 && b->seq >= steps[1].extent.first_seq && b->seq < o->since;
}

static bool grows(const struct leaks *l, enum category c, const struct owner *o)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].category == c && owners_same(&l->items[i].owner, o))
			return true;
	return false;
}

/* Of what is left from earlier steps: the line that grows, or that the passes left most of. */
const struct oom_holder *oom_grown_most(const struct oom *o)
{
	bool told = o->leaks.count && !o->by_pass;
	const struct oom_holder *best = NULL;

	for (size_t i = 0; i < o->holders.count; i++) {
		const struct oom_holder *h = &o->holders.items[i];
		bool counts = told ? grows(&o->leaks, h->category, &h->owner)
				   : oom_is_passing(h->category);

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

/* With too few steps to see a growth: activations of a step that is over are kept graphs. Calls of
 * a model without a backward pass may be one step that is not over. */
static void add_growth(struct oom *o, const struct block *b, enum category c,
		       const struct owner *owner)
{
	bool told = o->leaks.from_step != o->leaks.to_step && !o->by_pass;
	bool over = o->timeline->steps.basis != STEPS_FORWARD;

	if (told ? !grows(&o->leaks, c, owner) : !oom_is_passing(c) || !over)
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
		struct oom_holder *h = place(&o->holders, c, &owner);

		h->bytes += b->size;
		h->blocks++;
		if (!is_old(o, b))
			continue;
		h->before += b->size;
		add_growth(o, b, c, &owner);
	}
	if (o->holders.count)
		qsort(o->holders.items, o->holders.count, sizeof(*o->holders.items), by_bytes);
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

/* Half as large as the largest, or more, belongs to it: a copy, a gradient, another precision. */
static void find_spike(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	find_largest(o);
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (!is_computed(o->shot.classes[i]))
			continue;
		if (b->size >= p->largest / 2) {
			p->bytes += b->size;
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
