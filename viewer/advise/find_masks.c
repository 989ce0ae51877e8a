/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of an attention mask that each layer makes and its graph keeps: converted, compared with
 * a number (mask == 0), or converted from booleans by scaled_dot_product_attention. Each is
 * made from one tensor, the same in all layers, that needs no gradient.
 */

#include "advise.h"

enum { FEWEST = 3, AHEAD = 8 };

/* Copies of one tensor that one line makes. */
struct copies {
	struct advised first; /* first copy alive at the peak */
	size_t count;	      /* copies alive at the peak */
	uint64_t bytes, original;
	uint32_t pass, of_pass; /* latest pass, and the copies that it has made so far */
};

struct masks {
	struct advise *advise;
	struct line_plans lines;
	MAP_OF(struct copies) copies; /* by original and line */
};

static bool is_attention(const char *op)
{
	return strstr(op, "softmax") || strstr(op, "scaled_dot_product");
}

/* A comparison with a tensor, or an ordering, might involve a tensor of the layer's own, so those
 * do not count. */
static bool is_made_of_mask(const char *op)
{
	return ops_is_cast(op) || !strcmp(op, "eq_Scalar") || !strcmp(op, "ne_Scalar") ||
	       strstr(op, "_not") || strstr(op, "scaled_dot_product");
}

/* A saved block without gradient, made from one tensor, right before attention. */
static bool is_copy(struct masks *m, const struct advised *l, struct advised *original)
{
	struct advise *a = m->advise;
	struct advised next;

	if (l->size < SCORES_MIN || !l->course->saved || advise_tags(a, l) & BLOCK_GRAPH ||
	    l->born->stage != STAGE_FORWARD || !is_made_of_mask(ops_find(a, l)->name) ||
	    !advise_made_of(a, l, original))
		return false;
	for (uint32_t i = l->life + 1; i <= l->life + AHEAD && i < advise_lives(a); i++)
		if (advise_life(a, i, UINT16_MAX, &next) && is_attention(ops_find(a, &next)->name))
			return true;
	return false;
}

/* NULL: not a copy of a mask. */
static struct copies *copies_of(struct masks *m, const struct advised *l)
{
	struct advised original;
	struct copies *c;
	size_t line;

	if (!is_copy(m, l, &original))
		return NULL;
	line = (size_t)(lines_of(&m->lines, m->advise, l) - m->lines.items);
	c = map_item(&m->copies, (uint64_t)original.life << 32 | line);
	c->original = original.size;
	return c;
}

/* Plans all but the first copy of each pass. */
static void without_copies(struct masks *m, struct finding *f, const struct advised *l)
{
	struct copies *c = copies_of(m, l);
	struct owner owner = advise_owner(m->advise, l);

	if (!c || !owners_same(&owner, &f->owner))
		return;
	c->of_pass = c->pass == l->born->forwards ? c->of_pass + 1 : 1;
	c->pass = l->born->forwards;
	if (c->of_pass > 1)
		plan_without(&f->plan, l->life, l->from, l->until, l->size);
}

void advise_mask_copies(struct advise *a)
{
	struct masks m = { .advise = a };
	const struct copies *most;
	struct copies *c;
	struct finding *f;

	ADVISE_EACH (a, CLASS_BIT(activations), l)
		if (advise_counts(a, &l) && (c = copies_of(&m, &l))) {
			c->first = c->count++ ? c->first : l;
			c->bytes += l.size;
		}
	/* an original as large as all copies might have a part for each */
	most = GREATEST_OF(x, m.copies.items, m.copies.count,
			   x->count >= FEWEST && x->original < x->bytes, x->bytes);
	if (most) {
		f = advise_add(a, "mask_copies");
		if (is_attention(ops_find(a, &most->first)->name))
			f->words = "attention_mask";
		f->owner = advise_owner(a, &most->first);
		f->bytes = most->bytes;
		f->blocks = most->count;
		ADVISE_EACH (a, CLASS_BIT(activations), l)
			without_copies(&m, f, &l);
	}
	lines_free(&m.lines);
	map_items_free(&m.copies);
}
