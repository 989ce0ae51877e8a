/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What autograd saved, on the host until backward wants it (save_on_cpu): a copy goes when it is
 * saved, and comes back while its node runs.
 */

#include "../base/arithmetic.h"
#include "sites.h"

#define SAVED (CLASS_BIT(activations) | CLASS_BIT(inputs))

/* Autograd had it at the peak, made in a forward pass. */
static bool is_saved(const struct advise *a, const struct advised *l)
{
	return a->saved[l->life] && !stage_is_backward(l->born->stage) &&
	       l->born->stage != STAGE_OPTIMIZER && !advise_held(a, l);
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

/* The most that one operator saved: its node has all of that at once. */
static uint64_t most_of_node(struct advise *a)
{
	uint32_t births = advise_lives(a) + 1;
	uint64_t *nodes = need_new(births * sizeof(*nodes)), most = 0;

	ADVISE_EACH (a, SAVED | CLASS_BIT(parameters), l) {
		uint64_t *node = &nodes[lives_born_by(a->lives, a->saved[l.life])];

		*node += a->saved[l.life] ? l.size : 0;
		most = *node > most ? *node : most;
	}
	free(nodes);
	return most;
}

/* Graphs of backward passes (for second derivatives) save what they take from the host anew. */
static bool is_twice(struct advise *a)
{
	bool found = false;

	ADVISE_EACH (a, UINT16_MAX, l)
		found |= l.born->stage == STAGE_BACKWARD && a->saved[l.life];
	return found;
}

static void note_layers(struct advise *a, struct layers *layers)
{
	struct sites sites = { .stacks = &a->timeline->stacks };

	ADVISE_EACH (a, UINT16_MAX, l) {
		struct site_path p = { 0 };

		if (l.born->stage == STAGE_FORWARD)
			p = sites_find(&sites, l.stack);
		if (p.count)
			layers_note(layers, &p, &l);
	}
	sites_free(&sites);
}

void advise_offload(struct advise *a)
{
	uint64_t bytes = 0, largest = 0;
	struct layers layers = { 0 };
	struct finding *f;

	if (is_twice(a))
		return;
	f = advise_add(a, "offload_activations");
	note_layers(a, &layers);
	ADVISE_EACH (a, SAVED, l) {
		uint64_t back = is_saved(a, &l) ? advise_next(a, a->saved[l.life], PHASE_BACKWARD)
						: PLAN_END;

		if (back == PLAN_END)
			continue;
		plan_without(&f->plan, a->saved[l.life] + 1, l.until, l.size, a->peak_seq);
		plan_without(&f->cautious,
			     arithmetic_least(back, layers_after_next(&layers, l.from)), l.until,
			     l.size, a->peak_seq);
		bytes += advise_counts(a, &l) ? l.size : 0;
		largest = l.size > largest && advise_counts(a, &l) ? l.size : largest;
	}
	f->range = f->about = f->sure = true;
	with_copies(a, &f->cautious, largest + most_of_node(a));
	layers_free(&layers);
	advise_put(f->what, "Run the forward pass and the loss under "
			    "torch.autograd.graph.save_on_cpu(): saved tensors wait on the host");
	advise_put(f->how,
		   "%s saved for backward %s, the largest tensor %s. Each step copies all of it to "
		   "the host and back",
		   B(bytes), a->when, B(largest));
}
