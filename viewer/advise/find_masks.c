/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of an attention mask that each layer makes and its graph keeps: in another type, compared
 * with a number (mask == 0), or what scaled_dot_product_attention makes of booleans. They are of
 * one tensor where only one of their size is there before the first layer, and nothing of that size
 * was made since the copy before. Such a copy was not made of anything that needs a gradient.
 */

#include "advise.h"

/* What holds a mask: the script gives it, a module has it as a buffer, or a layer makes it. */
#define MASKS                                                              \
	(CLASS_BIT(activations) | CLASS_BIT(inputs) | CLASS_BIT(buffers) | \
	 CLASS_BIT(forward_temporaries))

enum { FEWEST = 3, AHEAD = 8, ORIGINALS = 2, WIDEST = 8, UNSPLIT = 1 << 20 };

/* Copies of a line in the pass that the peak is of. */
struct copies {
	struct advised first, last;
	size_t count, originals;
	uint64_t size, bytes; /* size: of the smallest */
	bool same, differ;
	uint32_t pass, of_pass; /* the latest pass, and how many it has made so far */
};

struct masks {
	struct advise *advise;
	struct line_plans lines;
	struct copies *items; /* of each line */
	size_t room;
};

static bool is_attention(const char *op)
{
	return strstr(op, "softmax") || strstr(op, "scaled_dot_product");
}

/* A comparison with a tensor, or of order, may be with something of the layer's own. */
static bool is_made_of_mask(const char *op)
{
	return ops_is_cast(op) || !strcmp(op, "eq_Scalar") || !strcmp(op, "ne_Scalar") ||
	       strstr(op, "_not") || strstr(op, "scaled_dot_product");
}

/* Saved, without a gradient, and attention comes next. */
static bool is_copy(struct masks *m, const struct advised *l)
{
	struct advise *a = m->advise;
	struct advised next;

	if (l->size < SCORES_MIN || l->life >= a->lives->rows.count || !a->saved[l->life] ||
	    advise_tags(a, l) & BLOCK_GRAPH || l->born->stage != STAGE_FORWARD ||
	    !is_made_of_mask(ops_find(a, l)->name))
		return false;
	for (uint32_t i = l->life + 1; i <= l->life + AHEAD && i < advise_lives(a); i++)
		if (advise_life(a, i, UINT16_MAX, &next) && is_attention(ops_find(a, &next)->name))
			return true;
	return false;
}

/* Whether a block has room for as many values of 1 to 8 bytes, and is no larger than the allocator
 * may make it. */
static bool is_as_many(uint64_t block, uint64_t copy)
{
	for (unsigned width = 1; width <= WIDEST; width *= 2)
		if ((block >= copy * width && block < copy * width + UNSPLIT) ||
		    (block >= copy / width && block < copy / width + UNSPLIT))
			return true;
	return false;
}

/* A layer's result, of which no mask is made: sums only where attention itself converts booleans.
 */
static bool is_of_layer(struct masks *m, const struct advised *copy, const struct advised *l)
{
	const char *op = ops_find(m->advise, l)->name;

	return advise_tags(m->advise, l) & (BLOCK_GRAPH | BLOCK_LEAF) || ops_is_product(op) ||
	       strstr(op, "norm") || strstr(op, "embedding") ||
	       (is_attention(ops_find(m->advise, copy)->name) && strstr(op, "add_"));
}

static struct copies *copies_of(struct masks *m, const struct advised *l)
{
	size_t before = m->lines.count;
	struct line_plan *line = lines_of(&m->lines, m->advise, l);

	if (m->lines.count > before)
		*need_item(m->items, before, m->room) =
			(struct copies){ .first = *l, .size = l->size };
	return &m->items[line - m->lines.items];
}

static void note_copy(struct masks *m, struct copies *c, const struct advised *l)
{
	struct advised x;

	c->size = l->size < c->size ? l->size : c->size;
	c->bytes += l->size;
	c->differ |= l->size >= c->size + UNSPLIT || c->first.size >= c->size + UNSPLIT ||
		     l->born->forwards != c->first.born->forwards;
	for (uint32_t i = c->count++ ? c->last.life + 1 : l->life; i < l->life; i++)
		c->differ |= advise_life(m->advise, i, UINT16_MAX, &x) && x.until > l->from &&
			     is_as_many(x.size, l->size) && !is_of_layer(m, l, &x);
	c->last = *l;
}

/* There are so many, or none if a layer's own part of one may be what it copies. */
static void find_originals(struct masks *m, struct copies *c)
{
	const char *op = ops_find(m->advise, &c->first)->name;
	const struct advise *a = m->advise;

	ADVISE_EACH (a, MASKS, l) {
		if (l.life >= c->first.life || l.until <= c->last.from ||
		    !is_as_many(l.size, c->size) || is_of_layer(m, &c->first, &l))
			continue;
		c->originals++;
		c->differ |= l.size >= c->count * c->size ||
			     (l.size / c->size == 1 && !strstr(op, "eq_") && !strstr(op, "ne_"));
	}
	c->same = !c->differ && c->count >= FEWEST && c->originals && c->originals <= ORIGINALS;
}

/* Removes every copy of a pass but the first; the cautious plan keeps one for each original. */
static void without_copies(struct finding *f, struct copies *c, const struct advised *l)
{
	c->of_pass = c->pass == l->born->forwards ? c->of_pass + 1 : 1;
	c->pass = l->born->forwards;
	if (c->of_pass > 1)
		plan_without(&f->plan, l->from, l->until, l->size);
	if (c->of_pass > c->originals)
		plan_without(&f->cautious, l->from, l->until, l->size);
}

static void say_masks(struct masks *m, struct finding *f, const struct copies *c)
{
	f->owner = advise_owner(m->advise, &c->first);
	f->range = true;
	advise_put(
		f->what, "%s",
		is_attention(ops_find(m->advise, &c->first)->name)
			? "Give scaled_dot_product_attention a mask of 0 and -inf in the type of "
			  "the query, made once before the layers: it converts a mask of "
			  "booleans in each call"
			: "Convert the attention mask once, before the layers, and give all of "
			  "them the result");
	advise_put(
		f->how,
		"%s in %s %s: every layer makes its own copy of the mask, and its graph keeps "
		"it. A single copy is enough%s. Whether a layer changes the mask in place is not "
		"recorded",
		B(c->bytes), MANY(c->count, "block"), m->advise->when,
		c->originals > 1 ? ", or one for each of two masks" : "");
}

void advise_mask_copies(struct advise *a)
{
	struct masks m = { .advise = a };
	const struct copies *most = NULL;
	struct finding *f;

	ADVISE_EACH (a, CLASS_BIT(activations), l)
		if (advise_counts(a, &l) && is_copy(&m, &l))
			note_copy(&m, copies_of(&m, &l), &l);
	FOR_EACH (struct copies, c, m.items, m.lines.count) {
		find_originals(&m, c);
		if (c->same && (!most || c->bytes > most->bytes))
			most = c;
	}
	if (most) {
		f = advise_add(a, "mask_copies");
		say_masks(&m, f, most);
		ADVISE_EACH (a, CLASS_BIT(activations), l)
			if (is_copy(&m, &l) && copies_of(&m, &l)->same)
				without_copies(f, copies_of(&m, &l), &l);
	}
	lines_free(&m.lines);
	free(m.items);
}
