/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of equal size, one in each layer, that nothing ever writes: most likely masks or tables
 * of angles for the longest context, which all layers could share. Their contents are not
 * recorded, so the lower end of the saving is 0. Quantized weights in buffers have several
 * sizes and are excluded.
 */
#include "advise.h"

enum { FEWEST = 4, ALIKE = 64 };

struct equal {
	struct advised first;
	uint64_t count;
	bool written; /* a work that made no block used one of them */
};

struct search {
	struct advise *advise;
	MAP_OF(struct equal) groups; /* by size */
	struct map weights;	     /* size -> number of parameters */
};

/* A work that only reads a buffer makes a block from it; a work that makes none might write it. */
static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct search *s = ctx;
	const struct model *m = &s->advise->timeline->model;

	if (ANY_OF(x, lives, count, uses_begin(m, *x, work)))
		return;
	for (size_t i = 0; i < count; i++) {
		struct advised l;
		struct equal *e;

		if (!advise_life(s->advise, lives[i], CLASS_BIT(buffers), &l))
			continue;
		e = map_find(&s->groups, l.size);
		if (e)
			e->written = true;
	}
}

/* Number of layers with one or more of these buffers (tables of sines and cosines): the largest
 * number of equal weights that divides the count. */
static uint64_t layers_of(const struct search *s, const struct equal *e)
{
	uint64_t most = 0;

	for (size_t i = 0; i < s->weights.room; i++)
		if (s->weights.slots[i].used && e->count % s->weights.slots[i].value == 0 &&
		    s->weights.slots[i].value > most)
			most = s->weights.slots[i].value;
	return most;
}

static void add_equal(struct search *s, const struct equal *e)
{
	struct advise *a = s->advise;
	uint64_t layers = layers_of(s, e), left = layers ? e->count / layers : 0;
	struct finding *f;

	if (e->written || layers < FEWEST || e->first.size * e->count < a->peak / 20 ||
	    ANY_OF(x, s->groups.items, s->groups.count,
		   x != e && x->count >= FEWEST && x->first.size >= e->first.size / ALIKE))
		return;
	f = advise_add(a, "equal_buffers");
	f->range = true;
	ADVISE_EACH (a, CLASS_BIT(buffers), l)
		if (advise_counts(a, &l) && l.size == e->first.size && (left ? left-- : 0) == 0)
			advise_without(a, f, &l, l.from);
	advise_name(a, f, &e->first);
	advise_put(f->how,
		   "%s of %s each %s, for %" PRIu64 " modules. No work writes them. Whether they "
		   "hold the same is not recorded",
		   MANY(e->count, "buffer"), B(e->first.size), a->when, layers);
}

void advise_equal_buffers(struct advise *a)
{
	struct search s = { .advise = a };

	ADVISE_EACH (a, OF_THE_MODEL, l) {
		if (!advise_counts(a, &l))
			continue;
		if (l.classes & CLASS_BIT(parameters)) {
			++*map_put(&s.weights, l.size, NULL);
		} else if (l.classes & CLASS_BIT(buffers) && l.size >= a->least / ALIKE) {
			struct equal *e = map_item(&s.groups, l.size);

			e->first = e->count++ ? e->first : l;
		}
	}
	if (s.groups.count)
		advise_works(a, note_work, &s);
	FOR_EACH (struct equal, e, s.groups.items, s.groups.count)
		add_equal(&s, e);
	map_items_free(&s.groups);
	map_free(&s.weights);
}
