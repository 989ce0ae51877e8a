/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What autograd saved, on the host until backward wants it (save_on_cpu): a copy goes when it is
 * saved, and comes back while its node runs.
 */
#include "advise.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

#define SAVED (CLASS_BIT(activations) | CLASS_BIT(inputs))

/* Autograd had it at the peak, made in a forward pass. */
static bool is_saved(const struct advise *a, const struct advised *l)
{
	return a->saved[l->life] && !stage_is_backward(l->born->stage) &&
	       l->born->stage != STAGE_OPTIMIZER;
}

/* Its holder in the forward pass lets it go with the next block that lives as long: the next layer
 * has then read it. */
static uint64_t after_layer(const struct advise *a, const struct advised *l)
{
	uint64_t backward = advise_next(a, l->from, PHASE_BACKWARD), step = a->saved[l->life];

	return step + 1 < backward ? step + 1 : backward;
}

/* While backward runs, what a node had saved is there again: a tensor and its weight. */
static void with_copies(struct advise *a, struct life_plan *p, uint64_t bytes)
{
	const struct spans *s = &a->timeline->model.spans;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].phase == PHASE_BACKWARD)
			plan_with(p, s->items[i].extent.first_seq, s->items[i].extent.last_seq + 1,
				  bytes, a->peak_seq);
}

static uint64_t largest_weight(struct advise *a)
{
	uint64_t largest = 0;
	struct advised l;

	ADVISE_EACH(a, CLASS_BIT(parameters), l)
	{
		if (a->saved[l.life] && l.size > largest)
			largest = l.size;
	}
	return largest;
}

void advise_offload(struct advise *a)
{
	struct finding *f = advise_add(a, "offload_activations");
	uint64_t bytes = 0, largest = 0;
	struct advised l;

	ADVISE_EACH(a, SAVED, l)
	{
		uint64_t back = advise_next(a, a->saved[l.life], PHASE_BACKWARD);

		if (!is_saved(a, &l) || back == PLAN_END)
			continue;
		plan_without(&f->plan, after_layer(a, &l), l.until, l.size, a->peak_seq);
		plan_without(&f->cautious, back, l.until, l.size, a->peak_seq);
		if (l.from > a->peak_seq || l.until <= a->peak_seq)
			continue;
		bytes += l.size;
		largest = l.size > largest ? l.size : largest;
	}
	f->range = f->about = true;
	with_copies(a, &f->plan, largest);
	with_copies(a, &f->cautious, 2 * largest + largest_weight(a));
	advise_put(f->what, "Run the forward pass and the loss under "
			    "torch.autograd.graph.save_on_cpu(): what backward needs waits on the "
			    "host");
	advise_put(f->how,
		   "%s saved for backward at the peak, the largest %s; it costs a copy of all of it "
		   "to the host and back in each step",
		   B(bytes), B(largest));
}
