/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer's result of which only a slice is used and gets a gradient. The node of the slice makes
 * zeros as large as the whole for a gradient as large as the slice. If the layer received only
 * the needed rows (logits of the answer's positions), neither the rest nor the zeros would
 * exist. A result with several slices is used whole and left out. Before any backward pass the
 * sign is a copy: the loss copies a slice of the latest product, because a slice has gaps.
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

/* Bytes of the slice's gradient, made by the node before; 0 = not found. */
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

/* The zeros are added to another gradient of the same size, because the tensor has other uses: one
 * was there before, or came while the zeros wait for a further node. */
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

/* Finds the largest result of which at most half is used, if each has a single slice. */
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

/* Finds a product, a copy of a slice of it, and a result of the loss, one right after the other. */
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

/* Plans the last result of that size in each pass. Earlier layers use theirs. */
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
		advise_put(f->how,
			   "%s %s in its results and their gradients, %s each. Only a slice "
			   "of %s %s",
			   B(f->bytes), a->when, B(cut.whole), B(cut.part),
			   sliced ? "gets a gradient" : "is used until then");
	}
}
