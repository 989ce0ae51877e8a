/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where the program calls its modules, and what became of what they made. A place is the line
 * that calls them and all functions that led there: an evaluation that a trainer runs in between is
 * another one than its training. One from which passes came and went and no backward pass ever used
 * one keeps its activations for nothing. And scores of attention: the product and the softmax of
 * it, as large as each other, that a fused kernel never makes.
 */
#include <stdlib.h>
#include <string.h>

#include "../answers/scores.h"
#include "oom.h"

#define FEWEST	4 /* passes alive at once that say as much as one that came and went, */
#define SETTLED 3 /* or a step before which every place of the training had its turn */

enum { WALKED = 1, LET_GO = 2 };

static bool is_module_call(const struct frame *f)
{
	return owners_is_forward(f->function) || !strcmp(f->function, "forward") ||
	       strstr(f->function, "_call_impl");
}

/* 0 = no module is on the stack. */
static uint64_t place_of(struct stacks *s, uint32_t stack)
{
	uint64_t h = 0;
	unsigned line = 0;

	stacks_read_python(s, stack);
	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];

		if (is_module_call(f))
			return (h ^ line) | 1;
		h = map_hash_text(map_hash_text(h, f->file), f->function);
		line = f->line;
	}
	return 0;
}

struct places {
	struct stacks *stacks;
	struct map map; /* place -> WALKED, LET_GO */
};

static void note_place(void *ctx, uint32_t stack, bool used, bool let_go)
{
	struct places *p = ctx;
	uint64_t place = place_of(p->stacks, stack);

	if (place)
		*map_put(&p->map, place, NULL) |= (used ? WALKED : 0) | (let_go ? LET_GO : 0);
}

/* Passes of that place that hold something now. */
static size_t passes_of(const struct oom *o, struct stacks *s, uint64_t place)
{
	struct map seen = { 0 };
	size_t n;

	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (o->shot.classes[i] == CATEGORY_activations && place_of(s, b->stack) == place)
			map_put(&seen, model_born(o->shot.model, b)->forwards, NULL);
	}
	n = seen.count;
	map_free(&seen);
	return n;
}

uint64_t oom_never_walked(const struct oom *o, struct owner *where)
{
	struct stacks *s = (struct stacks *)&o->timeline->stacks;
	uint64_t here = place_of(s, o->wanted.stack), bytes = 0;
	struct places places = { .stacks = s };
	const uint32_t *at;

	if (!here || !o->shot.model->spans.backwards)
		return 0;
	classify_graph_stacks(o->shot.model, note_place, &places);
	at = map_get(&places.map, here);
	if ((at && *at & WALKED) ||
	    (!(at && *at & LET_GO) && o->step < SETTLED && passes_of(o, s, here) < FEWEST))
		here = 0;
	for (size_t i = 0; here && i < o->shot.moment.count; i++)
		if (o->shot.classes[i] == CATEGORY_activations &&
		    place_of(s, o->shot.moment.blocks[i].stack) == here)
			bytes += o->shot.moment.blocks[i].size;
	map_free(&places.map);
	*where = owners_caller((struct owners *)&o->timeline->owners, o->wanted.stack);
	return bytes;
}

/* A function that makes products and a softmax: of its two products one is of the softmax. */
struct attention {
	struct owner owner; /* its line does not count */
	bool has_softmax;
	uint64_t softmax, product, bytes; /* the largest one alive */
	struct map products;		  /* instructions */
};

static bool has_file(const struct owner *owner)
{
	return owner->file && owner->file[0];
}

static void look_at(struct oom *o, const struct block *b, struct attention *a, bool sum)
{
	struct owner owner = owners_find(&o->timeline->owners, b);
	enum made made;
	char op[64];

	if (b->size < SCORES_MIN || !has_file(&owner) ||
	    strcmp(owner.function, a->owner.function) || strcmp(owner.file, a->owner.file))
		return;
	instant_operator(&o->timeline->stacks, b->stack, b->seq, op, sizeof(op));
	made = scores_made_by(op);
	if (!sum && made == MADE_SOFTMAX && b->size > a->softmax)
		a->softmax = b->size;
	if (!sum && made == MADE_PRODUCT && b->size > a->product)
		a->product = b->size;
	if (sum && made != MADE_OTHER && scores_alike(b->size, a->product))
		a->bytes += b->size;
}

/* All stacks of the recording: what the function did in earlier passes says what it is. */
static void look_at_function(struct oom *o, struct attention *a)
{
	const struct map *ids = &o->timeline->stacks.defs->nodes.ids;
	struct stacks *s = &o->timeline->stacks;
	char op[64];

	for (size_t i = 0; i < ids->room; i++) {
		struct block b = { .stack = (uint32_t)ids->slots[i].key,
				   .seq = o->refusal.event.seq };
		const struct defs_node *n = ids->slots[i].used ? defs_node(s->defs, b.stack) : NULL;
		struct owner owner;
		enum made made;

		if (!n || n->frame != GMT_FRAME_JOIN)
			continue;
		owner = owners_find(&o->timeline->owners, &b);
		if (strcmp(owner.function, a->owner.function) || strcmp(owner.file, a->owner.file))
			continue;
		instant_operator(s, b.stack, b.seq, op, sizeof(op));
		made = scores_made_by(op);
		a->has_softmax |= made == MADE_SOFTMAX;
		if (made == MADE_PRODUCT && s->python_count)
			map_put(&a->products, s->python[0], NULL);
	}
}

static void look_at_all(struct oom *o, struct attention *a, bool sum)
{
	look_at(o, &o->wanted, a, sum);
	for (size_t i = 0; i < o->shot.moment.count; i++)
		if (oom_is_passing(o->shot.classes[i]))
			look_at(o, &o->shot.moment.blocks[i], a, sum);
}

uint64_t oom_scores(const struct oom *of, struct owner *where)
{
	struct oom *o = (struct oom *)of;
	struct attention a = { .owner = o->wanted_owner };

	if (o->wanted.size < o->spike.largest / 4 || !has_file(&a.owner))
		a.owner = o->spike.owner;
	if (!has_file(&a.owner))
		return 0;
	look_at_all(o, &a, false);
	if (!a.product || (a.softmax && !scores_alike(a.softmax, a.product)))
		return 0;
	look_at_function(o, &a);
	if (a.has_softmax && a.products.count > 1)
		look_at_all(o, &a, true);
	map_free(&a.products);
	*where = a.owner;
	return a.bytes;
}
