/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits in float32 that the model made in 16 bits. The loss receives a copy of twice the size,
 * and its log-softmax and gradients have the size of the copy. Under autocast the copy might
 * be made inside the loss, from the log-softmax.
 */

#include "advise.h"

enum { SLACK = 2 << 20 };

static bool near(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart < SLACK && apart <= b / 16;
}

/* Made by a cast, or by the loss from an earlier block of the same call. */
static bool is_copy(struct advise *a, const struct advised *l, struct advised *original)
{
	const struct op *op = ops_find(a, l), *of;

	if (stage_is_backward(l->born->stage) || (!ops_is_cast(op->name) && !ops_is_loss(op)) ||
	    !advise_made_of(a, l, original) || !near(2 * original->size, l->size))
		return false;
	of = ops_find(a, original);
	return ops_is_cast(op->name) || (ops_is_loss(of) && of->at == op->at);
}

/* Removes the copies and keeps each original alive in its place. False: there are none. */
static bool without_copies(struct advise *a, struct finding *f, uint64_t size)
{
	struct advised original;
	bool found = false;

	ADVISE_EACH (a, OF_ONE_PASS, l) {
		if (!near(l.size, size) || !is_copy(a, &l, &original))
			continue;
		plan_without(&f->plan, l.life, l.from, l.until, l.size);
		plan_with(&f->plan, original.life, original.until, l.until, original.size);
		f->owner = ops_find(a, &l)->owner;
		found = true;
	}
	return found;
}

/* Without the conversion the loss's own tensors are half as large. */
static void without_halves(struct advise *a, struct finding *f, uint64_t size)
{
	struct advised original;

	ADVISE_EACH (a, CLASSES_THAT(ARE_COMPUTED), l) {
		if (!near(l.size, size) || l.born->stage == STAGE_OPTIMIZER)
			continue;
		f->bytes += advise_counts(a, &l) ? l.size : 0;
		if (!ops_is_cast(ops_find(a, &l)->name) && !is_copy(a, &l, &original))
			plan_without(&f->plan, l.life, l.from, l.until, l.size - l.size / 2);
	}
}

void advise_float_logits(struct advise *a)
{
	uint64_t size = advise_logits(a, NULL);
	struct finding *f = size ? advise_add(a, "logits_in_float32") : NULL;

	if (!f || !without_copies(a, f, size))
		return;
	without_halves(a, f, size);
	f->size = size;
}
