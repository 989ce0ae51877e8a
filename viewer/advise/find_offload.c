/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What autograd saved, on the host until backward wants it (save_on_cpu): a copy goes when it is
 * saved, and comes back while its node runs.
 */

#include "../base/arithmetic.h"
#include "advise.h"

/* Autograd had it at the peak, made in a forward pass. */
static bool is_saved(const struct advise *a, const struct advised *l)
{
	return l->course->saved && !stage_is_backward(l->born->stage) &&
	       l->born->stage != STAGE_OPTIMIZER && !advise_held(a, l) &&
	       l->course->over == PLAN_END; /* a backward pass reads it */
}

/* Memory ran out in a pass, and no more of them wait for backward than ever did: one does, if it is
 * the first. */
static bool is_awaited(const struct advise *a)
{
	const struct spans *s = &a->timeline->model.spans;
	uint32_t pass = 0, done = 0, most = advise_most_before_backward(s, a->until);

	for (size_t i = 0; i < advise_spans_begun(a, a->until); i++) {
		done = s->items[i].phase == PHASE_BACKWARD ? pass : done;
		pass = span_is_forward(&s->items[i]) ? s->items[i].pass : pass;
	}
	return a->wanted_count && a->wanted->born->forwards <= done + (most ? most : 1);
}

/* When backward comes to it at the earliest, PLAN_END = it does not. */
static uint64_t back_at(const struct advise *a, const struct advised *l, bool awaited)
{
	uint64_t back = advise_next(a, l->course->saved, PHASE_BACKWARD);

	return back == PLAN_END && awaited && l->born->forwards == a->wanted->born->forwards
		       ? a->until
		       : back;
}

/* The most that one operator saved: its node has all of that at once. */
static uint64_t most_of_node(struct advise *a)
{
	uint32_t births = advise_lives(a) + 1;
	uint64_t *nodes = need_new(births * sizeof(*nodes)), most = 0;

	/* A hook gets weights that a node saved, too. */
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED) | CLASS_BIT(parameters), l) {
		uint64_t *node = &nodes[lives_born_by(a->lives, l.course->saved)];

		*node += l.course->saved ? l.size : 0;
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
		found |= l.born->stage == STAGE_BACKWARD && l.course->saved;
	return found;
}

void advise_offload(struct advise *a)
{
	bool awaited = is_awaited(a);
	uint64_t largest = 0;
	struct finding *f;

	if (is_twice(a))
		return;
	f = advise_add(a, "offload_activations");
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED), l) {
		uint64_t back = is_saved(a, &l) ? back_at(a, &l, awaited) : PLAN_END;

		if (back == PLAN_END)
			continue;
		advise_without(a, f, &l, l.course->saved + 1);
		plan_without(&f->cautious, l.life,
			     arithmetic_least(back, layers_after_next(a, l.from)), l.until, l.size);
		largest = l.size > largest && advise_counts(a, &l) ? l.size : largest;
	}
	f->range = f->about = f->sure = true;
	/* What a node had saved is there again while it runs: a tensor and its weight. */
	advise_with_in(a, &f->cautious, PHASE_BACKWARD, largest + most_of_node(a));
	advise_put(f->how,
		   "%s saved for backward %s, the largest tensor %s. Each step copies all of it to "
		   "the host and back",
		   B(f->bytes), a->when, B(largest));
}
