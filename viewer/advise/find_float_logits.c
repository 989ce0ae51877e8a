/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits in float32 that a model makes in 16 bits: a copy twice as large as what it is made of goes
 * into the loss, whose log-softmax and gradients are then as large as the copy.
 */
#include <string.h>

#include "../answers/scores.h"
#include "ops.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

#define LOGITS \
	(CLASS_BIT(activations) | CLASS_BIT(forward_temporaries) | CLASS_BIT(backward_temporaries))

enum { SLACK = 2 << 20, LOOK_BACK = 64 };

static bool near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < SLACK;
}

static bool is_named(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

static bool is_cast(const char *op)
{
	return !strncmp(op, "to_", 3) || strstr(op, "_to_copy");
}

/* The log-softmax of a loss at the peak: the largest. */
static uint64_t find_loss(struct ops *ops)
{
	static const char *const loss[] = { "log_softmax", "cross_entropy", NULL };
	const struct advise *a = ops->advise;
	uint64_t largest = 0;
	struct advised l;

	ADVISE_EACH(a, CLASS_BIT(activations), l)
	{
		if (l.size <= largest || l.size < SCORES_MIN || !advise_counts(a, &l) ||
		    stage_is_backward(l.born->stage))
			continue;
		if (is_named(ops_find(ops, &l)->name, loss))
			largest = l.size;
	}
	return largest;
}

/* What it is a copy of: the latest tensor of half the size that was there. */
static bool find_original(const struct advise *a, const struct advised *copy, struct advised *found)
{
	for (uint32_t i = 1; i <= LOOK_BACK && i <= copy->life; i++)
		if (advise_life(a, copy->life - i, LOGITS | CLASS_BIT(inputs), found) &&
		    near(2 * found->size, copy->size) && copy->from < found->until)
			return true;
	return false;
}

/* The copies go; what each was made of stays in its place. The size of one, 0 = there is none. */
static uint64_t without_copies(struct ops *ops, struct finding *f, uint64_t size)
{
	struct advise *a = ops->advise;
	struct advised l, original;
	uint64_t found = 0;

	ADVISE_EACH(a, LOGITS | CLASS_BIT(inputs), l)
	{
		const struct op *op;

		if (!near(l.size, size) || stage_is_backward(l.born->stage))
			continue;
		op = ops_find(ops, &l);
		if (!is_cast(op->name) || !find_original(a, &l, &original))
			continue;
		plan_without(&f->plan, l.from, l.until, l.size, a->peak_seq);
		plan_with(&f->plan, original.until, l.until, original.size, a->peak_seq);
		f->owner = op->owner;
		found = l.size;
	}
	return found;
}

/* What the loss makes of them is half as large; the gradient of the copying is not made. */
static uint64_t without_halves(struct ops *ops, struct finding *f, uint64_t size)
{
	static const char *const cast[] = { "ToCopy", NULL };
	struct advise *a = ops->advise;
	uint64_t bytes = 0;
	struct advised l;

	ADVISE_EACH(a, LOGITS, l)
	{
		const struct op *op = NULL;

		if (near(l.size, size) || near(2 * l.size, size))
			op = ops_find(ops, &l);
		if (!op || l.born->stage == STAGE_OPTIMIZER)
			continue;
		if (near(l.size, size) && advise_counts(a, &l))
			bytes += l.size;
		if (is_named(op->name, cast))
			plan_without(&f->plan, l.from, l.until, l.size, a->peak_seq);
		else if (near(l.size, size) && !is_cast(op->name))
			plan_without(&f->plan, l.from, l.until, l.size - l.size / 2, a->peak_seq);
	}
	return bytes;
}

void advise_float_logits(struct advise *a)
{
	struct ops ops = { .advise = a };
	uint64_t size = find_loss(&ops), bytes;
	struct finding *f;

	if (size) {
		f = advise_add(a, "logits_in_float32");
		if (without_copies(&ops, f, size)) {
			bytes = without_halves(&ops, f, size);
			advise_put(f->what,
				   "Give the loss its logits in 16 bits, without .float(): it "
				   "computes in float32 inside (autocast makes the copy too, "
				   "unless it is off around the loss)");
			advise_put(
				f->how,
				"%s %s in float32 logits, their log-softmax and their gradients, "
				"%s each, made of logits of half the size; the loss's gradient "
				"is rounded to 16 bits",
				B(bytes), a->when, B(size));
		}
	}
	ops_free(&ops);
}
