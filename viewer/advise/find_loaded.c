/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint that was read onto the device and copied into a model that is other memory. Blocks
 * of a file are compared by size with the weights that are trained: what the optimizer needs of
 * that size and has not made itself may be the file's, the rest of them is a second set of weights.
 */

#include "../model/optimizers.h"
#include "advise.h"

#define SMALL 4096 /* of many sizes rounded up to one */

struct size_count {
	uint64_t size;
	size_t loaded, trained, made; /* blocks; made: state, by an optimizer's step */
};

struct search {
	struct advise *advise;
	struct map ids; /* bytes -> index */
	struct size_count *items;
	size_t count, room;
};

static bool is_loaded(const struct advise *a, const struct advised *l)
{
	return l->life < a->lives->rows.count && l->size > SMALL &&
	       !(l->classes & CLASS_BIT(optimizer_state)) &&
	       model_signs(&a->timeline->model, l->stack) & STACK_LOAD && !a->saved[l->life] &&
	       !advise_leaf(a, l);
}

/* A pass that keeps nothing may be that of a model which is not trained, a teacher's. */
static bool has_other_passes(const struct advise *a)
{
	const struct spans *s = &a->timeline->model.spans;

	FOR_EACH (const struct span, x, s->items, s->count)
		if (x->phase == PHASE_FORWARD && x->work && !x->kept && !x->refused &&
		    advise_next(a, x->extent.last_seq, PHASE_FORWARD) < a->until)
			return true;
	return false;
}

static void count_sizes(struct search *s)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, UINT16_MAX, l) {
		struct size_count *x;

		if (!advise_counts(a, &l) || l.size <= SMALL || l.life >= a->lives->rows.count)
			continue;
		x = map_item(s, l.size);
		x->size = l.size;
		if (is_loaded(a, &l))
			x->loaded++;
		else if (l.classes & CLASS_BIT(parameters) && advise_leaf(a, &l))
			x->trained++;
		else if (l.classes & CLASS_BIT(optimizer_state))
			x->made++;
	}
}

/* No more than one set: of others nothing is known. */
static size_t surplus_of(const struct size_count *x, size_t tensors)
{
	size_t needed = tensors * x->trained;
	size_t kept = needed > x->made ? needed - x->made : 0;
	size_t rest = x->loaded > kept ? x->loaded - kept : 0;

	return rest < x->trained ? rest : x->trained;
}

static void plan(struct search *s, struct finding *f, size_t tensors)
{
	struct advise *a = s->advise;

	for (size_t i = 0; i < s->count; i++)
		s->items[i].loaded = surplus_of(&s->items[i], tensors);
	ADVISE_EACH (a, UINT16_MAX, l) {
		uint32_t *at = map_get(&s->ids, l.size);

		if (!at || !advise_counts(a, &l) || !is_loaded(a, &l) || !s->items[*at].loaded)
			continue;
		s->items[*at].loaded--;
		advise_without(a, f, &l, advise_next(a, l.from, PHASE_FORWARD));
		advise_name(a, f, &l);
	}
	a->file_is_held = plan_less(&f->plan, a->peak_seq) > 0;
	advise_put(f->how,
		   "%s %s, read from a file in the sizes of the trained weights, besides the "
		   "weights themselves and the optimizer's state",
		   B(f->bytes), a->when);
}

void advise_loaded(struct advise *a)
{
	struct search s = { .advise = a };
	char name[OPTIMIZER_NAME];
	int tensors = optimizer_tensors(optimizer_of_spans(&a->timeline->model.spans, SIZE_MAX,
							   a->timeline->model.defs, name));

	if (tensors >= 0 && a->timeline->steps.count > 1 && !has_other_passes(a)) {
		count_sizes(&s);
		plan(&s, advise_add(a, "loaded"), (size_t)tensors);
	}
	map_items_free(&s);
}

bool advise_is_loaded(const struct advise *a, const struct advised *l)
{
	return a->file_is_held && is_loaded(a, l);
}
