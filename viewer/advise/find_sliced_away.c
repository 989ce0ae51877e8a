/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer's result of which a part is sliced out, and nothing else gets a gradient: the slice's
 * node makes zeros as large as the whole, for a gradient as large as the part. Where the layer is
 * given only what is needed (logits of the answer's positions) neither the rest nor those zeros
 * exist. A result that several slices are taken of is used up. Before any backward pass: what a
 * loss takes is a copy of a part of the product before it, because a slice has gaps.
 */

#include "advise.h"

enum { LOOK_BACK = 16 };

struct cut {
	uint64_t whole, part;
};

static bool is_slice(const char *node)
{
	return !strncmp(node, "Slice", 5) || !strncmp(node, "Index", 5) ||
	       !strncmp(node, "Select", 6);
}

/* The gradient of the part: what the node before it made. */
static uint64_t part_of(const struct advise *a, const struct advised *zeros)
{
	struct advised l;

	for (uint32_t i = 1; i <= LOOK_BACK && i <= zeros->life; i++)
		if (advise_life(a, zeros->life - i, CLASSES_THAT(ARE_COMPUTED), &l) &&
		    stage_is_backward(l.born->stage) && l.until > zeros->from &&
		    l.size >= zeros->size / 1024)
			return l.size;
	return 0;
}

/* Another gradient as large waits with it, for the sum that a tensor with other uses gets: it was
 * there before, or came while the zeros wait for a further node. */
static bool is_added(struct advise *a, const struct advised *zeros)
{
	uint32_t first = zeros->life > LOOK_BACK ? zeros->life - LOOK_BACK : 0;
	const char *node = NULL;
	struct advised l;

	for (uint32_t i = first; i < zeros->life + LOOK_BACK && i < advise_lives(a); i++) {
		const char *name;

		if (!advise_life(a, i, CLASSES_THAT(ARE_COMPUTED), &l) || l.from >= zeros->until ||
		    l.until <= zeros->from || !stage_is_backward(l.born->stage))
			continue;
		name = ops_find(a, &l)->name;
		if (node && strcmp(name, node))
			return true;
		if (l.size != zeros->size || is_slice(name))
			continue;
		if (l.from < zeros->from)
			return true;
		node = name;
	}
	return false;
}

/* The largest result that is mostly sliced away, if each of its slices is the only one. */
static bool find_cut(struct advise *a, struct cut *found)
{
	uint64_t pass = 0;

	*found = (struct cut){ 0 };
	ADVISE_EACH (a, CLASS_BIT(backward_temporaries), l) {
		uint64_t part;

		if (l.size < found->whole || l.size < SCORES_MIN ||
		    !stage_is_backward(l.born->stage) || !is_slice(ops_find(a, &l)->name))
			continue;
		if ((l.size == found->whole && l.born->forwards == pass) || is_added(a, &l))
			return false;
		part = part_of(a, &l);
		pass = l.born->forwards;
		if (part && part <= l.size / 2)
			*found = (struct cut){ .whole = l.size, .part = part };
	}
	return found->whole;
}

/* The latest product, the copy and what the loss makes of it follow each other. */
static bool find_taken(struct advise *a, struct cut *found)
{
	struct advised product = { 0 }, copy = { 0 }, whole = { 0 };

	ADVISE_EACH (a, CLASSES_THAT(ARE_COMPUTED), l) {
		if (l.size < SCORES_MIN || stage_is_backward(l.born->stage))
			continue;
		if (ops_is_loss(ops_find(a, &l))) {
			if (found->whole && scores_alike(l.size, found->part) &&
			    whole.until > l.from)
				return false;
			if (scores_alike(l.size, copy.size) && l.size <= product.size / 2 &&
			    product.until > l.from && ops_is_product(ops_find(a, &product)->name)) {
				*found = (struct cut){ .whole = product.size, .part = l.size };
				whole = product;
			}
		}
		product = copy;
		copy = l;
	}
	return found->whole;
}

static void leave_out(const struct advise *a, struct finding *f, const struct advised *l,
		      const struct cut *cut)
{
	plan_without(&f->plan, l->life, l->from, l->until, l->size - cut->part);
	f->bytes += advise_counts(a, l) ? l->size : 0;
}

/* The last result of that size in a pass: earlier layers use theirs. */
static void plan(struct advise *a, struct finding *f, const struct cut *cut)
{
	struct advised last = { 0 };

	ADVISE_EACH (a, CLASSES_THAT(ARE_COMPUTED), l) {
		bool backward = stage_is_backward(l.born->stage);
		const struct op *op = l.size == cut->whole ? ops_find(a, &l) : NULL;

		if (!op || !(backward ? is_slice(op->name) : ops_is_product(op->name)))
			continue;
		if (backward || (last.size && last.born->forwards != l.born->forwards))
			leave_out(a, f, backward ? &l : &last, cut);
		if (!backward) {
			f->owner = op->owner;
			last = l;
		}
	}
	if (last.size)
		leave_out(a, f, &last, cut);
}

void advise_unused_results(struct advise *a)
{
	struct finding *f;
	struct cut cut;
	bool sliced = find_cut(a, &cut);

	if (sliced || (!cut.whole && find_taken(a, &cut))) {
		f = advise_add(a, "unused_results");
		plan(a, f, &cut);
		advise_put(f->what,
			   "Compute only the part of the result of %s that is used: slice its "
			   "input (in transformers logits_to_keep=)",
			   ADVISE_LINE(f));
		advise_put(f->how,
			   "%s %s in its results and their gradients, %s each. Only a slice "
			   "of %s %s",
			   B(f->bytes), a->when, B(cut.whole), B(cut.part),
			   sliced ? "gets a gradient" : "is used until then");
	}
}
