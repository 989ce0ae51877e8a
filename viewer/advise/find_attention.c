/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unfused attention. Two forms are found: a function with two products and a softmax of the size
 * of one product, and a function with the softmax of a product whose calling module makes the
 * second product next. A fused kernel makes none of these scores, nor their gradients. The
 * first product is remembered by its line, because with a longer sequence memory might run out
 * before the softmax.
 */

#include "../base/ending.h"
#include "advise.h"

enum { KEYS = 64 }; /* fewest keys in a row; a fused kernel keeps one value for each row */
enum { WIDE = 4 };  /* scores are so many times as large as any other result */

struct function {
	struct owner owner; /* function and file; the line is not used */
	struct map lines;   /* instructions that make products */
	struct made_last {
		uint64_t at; /* instruction */
		uint64_t size, from;
	} product;	 /* the latest product */
	uint64_t scores; /* instruction of the product that a softmax was made of */
	uint64_t largest;
	uint64_t others; /* largest result before its product; 0 = the product is not batched */
};

struct search {
	struct advise *advise;
	struct function *items;
	size_t count, room;
	uint64_t module; /* module of the latest softmax; 0 = a product came after it */
	size_t softmax;	 /* index of its function */
	uint64_t others; /* largest result that is no score */
};

static struct function *function_of(struct search *s, const struct owner *owner)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->items[i].owner.function, owner->function) &&
		    !strcmp(s->items[i].owner.file, owner->file))
			return &s->items[i];
	*need_item(s->items, s->count, s->room) = (struct function){ .owner = *owner };
	return &s->items[s->count - 1];
}

/* Key of the innermost module on the stack; 0 = none. */
static uint64_t module_of(struct search *s, const struct advised *l)
{
	struct site_path p = sites_find(s->advise, l->stack);

	return p.count ? p.items[p.count - 1].key : 0;
}

static void note_product(struct search *s, const struct advised *l, const struct op *op)
{
	struct function *f = function_of(s, &op->owner);

	map_put(&f->lines, op->at, NULL);
	f->product = (struct made_last){ op->at, l->size, l->from };
	f->others = stacks_have(&s->advise->timeline->stacks, l->stack, l->from, "bmm")
			    ? s->others + 1
			    : 0;
	if (s->module && s->module == module_of(s, l))
		map_put(&s->items[s->softmax].lines, op->at, NULL);
	s->module = 0;
}

static void collect(struct search *s)
{
	ADVISE_EACH (s->advise, CLASSES_THAT(ARE_COMPUTED) | CLASS_BIT(inputs), l) {
		bool look = l.size >= SCORES_MIN || s->module; /* the second product is small */
		const struct op *op = look ? ops_find(s->advise, &l) : NULL;
		enum made made = op ? scores_made_by(op->name) : MADE_OTHER;
		struct function *f;

		if ((l.born->stage == STAGE_FORWARD || l.classes & CLASS_BIT(inputs)) &&
		    l.size > s->others && made != MADE_PRODUCT &&
		    !(op && op->owner.file && op->owner.function &&
		      scores_alike(l.size, function_of(s, &op->owner)->product.size)))
			s->others = l.size;
		if (!op || stage_is_backward(l.born->stage) || !op->owner.file ||
		    !op->owner.file[0] || (made != MADE_PRODUCT && made != MADE_SOFTMAX))
			continue;
		if (made == MADE_PRODUCT)
			note_product(s, &l, op);
		f = function_of(s, &op->owner);
		if (made == MADE_SOFTMAX && l.size >= SCORES_MIN &&
		    scores_alike(l.size, f->product.size)) {
			f->scores = f->product.at;
			f->largest = f->largest > l.size ? f->largest : l.size;
			s->module = module_of(s, &l);
			s->softmax = (size_t)(f - s->items);
		}
	}
}

/* Backward nodes between the attention output and the product of the scores. */
static bool is_of_scores(const char *node)
{
	return strstr(node, "Dropout") ||
	       words_begin(node, ONE_OF("Softmax", "Bmm", "Div", "Mul", "Add", "To", "Mask",
					"Where", "View"));
}

static bool is_score(struct search *s, const struct function *f, const struct advised *l)
{
	const struct op *op;

	if (!scores_alike(l->size, f->largest))
		return false;
	op = ops_find(s->advise, l);
	if (stage_is_backward(l->born->stage) && l->born->stage != STAGE_RECOMPUTE)
		return is_of_scores(op->name);
	return op->owner.function && !strcmp(op->owner.function, f->owner.function) &&
	       scores_made_by(op->name) != MADE_OTHER;
}

/* Memory ran out in the softmax: the function made one batched product, far larger than all results
 * before, and requests as much again. */
static void expect_softmax(struct search *s, struct function *f)
{
	const struct advised *w = s->advise->wanted;
	const struct op *op;

	if (!s->advise->wanted_count || f->lines.count > 1 || !f->others ||
	    w->born->stage != STAGE_FORWARD || f->product.size < WIDE * f->others ||
	    !scores_alike(w->size, f->product.size))
		return;
	op = ops_find(s->advise, w);
	if (!op->owner.function || strcmp(op->owner.function, f->owner.function) != 0 ||
	    scores_made_by(op->name) != MADE_SOFTMAX)
		return;
	f->scores = f->product.at;
	f->largest = f->product.size;
	map_put(&f->lines, op->at, NULL);
}

/* No graph has the softmax of several calls, and they are there in a later one: the program keeps
 * them to read them. */
static bool are_kept(struct search *s, const struct function *f)
{
	size_t kept = 0;

	ADVISE_EACH (s->advise, CLASSES_THAT(ARE_COMPUTED), l)
		if (l.size >= SCORES_MIN && l.born->stage == STAGE_FORWARD &&
		    l.from < f->product.from && l.until > f->product.from && !l.course->saved &&
		    is_score(s, f, &l))
			kept++;
	return kept > 1;
}

static void add_attention(struct search *s, struct function *f)
{
	struct advise *a = s->advise;
	struct finding *x;

	expect_softmax(s, f);
	if (f->lines.count < 2 || !f->scores || are_kept(s, f))
		return;
	if (f->product.at == f->scores && f->product.size > f->largest)
		f->largest = f->product.size;
	x = advise_add(a, "attention");
	x->owner = f->owner;
	x->range = x->about = true;
	ADVISE_EACH (a, CLASSES_THAT(ARE_COMPUTED), l) {
		if (l.size < SCORES_MIN || !is_score(s, f, &l))
			continue;
		advise_without(a, x, &l, l.from);
		plan_without(&x->cautious, l.life, l.from, l.until, l.size - l.size / KEYS);
	}
	x->function = f->owner.function;
}

void advise_attention(struct advise *a)
{
	struct search s = { .advise = a };

	collect(&s);
	for (size_t i = 0; i < s.count; i++) {
		add_attention(&s, &s.items[i]);
		map_free(&s.items[i].lines);
	}
	free(s.items);
}
