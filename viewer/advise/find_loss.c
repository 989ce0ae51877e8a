/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits: as many values as the result of the log-softmax, in the forward pass, in the loss, and
 * their gradients. Where the loss is computed for a part of the positions at a time, each part
 * checkpointed, only one part of each is there.
 */
#include <string.h>

#include "../answers/scores.h"
#include "ops.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

#define LOGITS \
	(CLASS_BIT(activations) | CLASS_BIT(forward_temporaries) | CLASS_BIT(backward_temporaries))

enum { PIECES = 8 };

static bool is_loss(const char *op)
{
	return strstr(op, "log_softmax") || strstr(op, "cross_entropy");
}

/* The largest result of a log-softmax that was there at the peak. */
static uint64_t find_logits(struct ops *ops, struct owner *owner)
{
	const struct advise *a = ops->advise;
	uint64_t largest = 0;
	struct advised l;

	ADVISE_EACH(a, CLASS_BIT(activations), l)
	{
		const struct op *op;

		if (l.size <= largest || l.size < SCORES_MIN || l.from > a->peak_seq ||
		    l.until <= a->peak_seq || stage_is_backward(l.born->stage))
			continue;
		op = ops_find(ops, &l);
		if (!is_loss(op->name))
			continue;
		largest = l.size;
		*owner = op->owner;
	}
	return largest;
}

static uint64_t largest_parameter(const struct advise *a)
{
	uint64_t largest = 0;
	struct advised l;

	ADVISE_EACH(a, CLASS_BIT(parameters), l)
	{
		largest = l.size > largest ? l.size : largest;
	}
	return largest;
}

/* The gradient of the last layer's weight is summed up over the parts: twice while one comes. */
static void with_sums(struct advise *a, struct life_plan *p)
{
	const struct spans *s = &a->timeline->model.spans;
	uint64_t weight = largest_parameter(a);

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].phase == PHASE_BACKWARD)
			plan_with(p, s->items[i].extent.first_seq, s->items[i].extent.last_seq,
				  2 * weight, a->peak_seq);
}

static uint64_t without_logits(struct advise *a, struct life_plan *p, uint64_t size)
{
	struct advised l;
	uint64_t bytes = 0;

	ADVISE_EACH(a, LOGITS, l)
	{
		if (l.size < SCORES_MIN || !scores_alike(l.size, size) ||
		    l.born->stage == STAGE_OPTIMIZER)
			continue;
		plan_without(p, l.from, l.until, l.size - l.size / PIECES, a->peak_seq);
		bytes += l.from <= a->peak_seq && a->peak_seq < l.until ? l.size : 0;
	}
	return bytes;
}

void advise_loss(struct advise *a)
{
	struct ops ops = { .advise = a };
	struct owner owner = { 0 };
	uint64_t size = find_logits(&ops, &owner), bytes;
	struct finding *f;

	if (size) {
		f = advise_add(a, "loss_in_pieces");
		f->owner = owner;
		f->range = true;
		bytes = without_logits(a, &f->plan, size);
		without_logits(a, &f->cautious, size);
		with_sums(a, &f->cautious);
		advise_put(f->what,
			   "Compute logits and loss for an eighth of the positions at a time, each "
			   "part checkpointed (or with a fused loss such as Liger's)");
		advise_put(
			f->how,
			"%s at the peak in logits, their log-softmax and their gradients, %s each "
			"or half of that; at least: with the last layer's gradient twice while "
			"parts are summed up",
			B(bytes), B(size));
	}
	ops_free(&ops);
}
