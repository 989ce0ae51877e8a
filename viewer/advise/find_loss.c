/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits: successive results with as many values as the log-softmax, from the last layer to the
 * loss, and their gradients. If the loss is computed for a part of the positions at a time,
 * with each part checkpointed, only one part of each exists.
 */

#include "advise.h"

/* A batch may have up to LEAST times less rows that count than the largest one. */
enum { PIECES = 8, ROW = 64, LEAST = 4 };

uint64_t advise_logits(struct advise *a, struct owner *owner)
{
	uint64_t largest = 0;

	ADVISE_EACH (a, CLASS_BIT(activations), l) {
		if (l.size <= largest || l.size < SCORES_MIN || !advise_counts(a, &l) ||
		    stage_is_backward(l.born->stage) || !ops_is_loss(ops_find(a, &l)))
			continue;
		largest = l.size;
		if (owner)
			*owner = ops_find(a, &l)->owner;
	}
	return largest;
}

static uint64_t largest_parameter(const struct advise *a)
{
	uint64_t largest = 0;

	ADVISE_EACH (a, CLASS_BIT(parameters), l)
		largest = l.size > largest ? l.size : largest;
	return largest;
}

/* Successive results of one size, which may be another one in each step. Counted if one of them is
 * the loss's. */
struct row {
	struct advised items[ROW];
	size_t count;
	bool loss, backward;
};

static void end_row(struct advise *a, struct finding *f, struct row *r)
{
	for (size_t i = 0; i < r->count && r->loss; i++) {
		const struct advised *l = &r->items[i];
		uint64_t gone = l->size - l->size / PIECES;
		bool backward = stage_is_backward(l->born->stage);

		plan_without(&f->plan, l->life, l->from, l->until, backward ? gone : l->size);
		if (!advise_held(a, l) && l->size >= f->size / LEAST)
			plan_without(&f->cautious, l->life, l->from, l->until, gone);
		if (scores_alike(l->size, f->size))
			f->bytes += advise_counts(a, l) ? l->size : 0;
	}
	*r = (struct row){ 0 };
}

/* Stacks that appear more than once in a pass: those of repeated layers. */
static struct map find_layers(const struct advise *a)
{
	struct map latest = { 0 }, layers = { 0 };
	bool fresh;

	ADVISE_EACH (a, OF_ONE_PASS, l) {
		uint32_t *pass;

		if (l.size < SCORES_MIN || stage_is_backward(l.born->stage))
			continue;
		pass = map_put(&latest, l.stack, &fresh);
		if (!fresh && *pass == l.born->forwards)
			map_put(&layers, l.stack, NULL);
		*pass = l.born->forwards;
	}
	map_free(&latest);
	return layers;
}

static bool is_of_logits(struct advise *a, const struct map *layers, const struct advised *l)
{
	if (l->born->stage == STAGE_OPTIMIZER)
		return false;
	if (stage_is_backward(l->born->stage))
		return !strstr(ops_find(a, l)->name, "mm") &&
		       !strstr(ops_find(a, l)->name, "Linear"); /* a product belongs to a layer */
	return !map_get(layers, l->stack);
}

static bool is_of_line(struct advise *a, const struct advised *l, const struct owner *line)
{
	return ops_is_loss(ops_find(a, l)) && owners_same(&ops_find(a, l)->owner, line);
}

/* Plans the results from the last layer's on, and the gradients back to its product. */
static void without_logits(struct advise *a, struct finding *f, uint64_t size)
{
	struct map layers = find_layers(a);
	struct row row = { 0 };

	ADVISE_EACH (a, OF_ONE_PASS, l) {
		bool backward = stage_is_backward(l.born->stage);

		if (l.size < size / 64)
			continue;
		if (row.count == ROW || (row.backward && !backward) ||
		    (row.count && !scores_alike(l.size, row.items[0].size)))
			end_row(a, f, &row);
		if (!is_of_logits(a, &layers, &l)) {
			end_row(a, f, &row);
			continue;
		}
		if (!backward && is_of_line(a, &l, &f->owner))
			row.loss = true;
		row.backward |= backward;
		row.items[row.count++] = l;
	}
	map_free(&layers);
	end_row(a, f, &row);
}

void advise_loss(struct advise *a)
{
	struct owner owner;
	uint64_t size = advise_logits(a, &owner);
	struct finding *f;

	if (!size)
		return;
	f = advise_add(a, "loss_in_pieces");
	f->owner = owner;
	f->range = true;
	f->size = size;
	without_logits(a, f, size);
	/* The gradient of the last layer's weight is accumulated over the parts, so it is there
	 * twice while a part adds to it. */
	advise_with_in(a, &f->cautious, PHASE_BACKWARD, 2 * largest_parameter(a));
}
