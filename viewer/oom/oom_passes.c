/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes inside of one step. A training step holds what a few passes made until backward
 * has used it; an evaluation that holds far more of them keeps what it should let go.
 */
#include "oom.h"

#define FEWEST 4 /* passes that are many */

size_t oom_passes(const struct snapshot *s, uint64_t since)
{
	return snapshot_passes(s, since,
			       1u << CATEGORY_activations | 1u << CATEGORY_forward_temporaries);
}

/* The latest pass is at work: what it made first. */
static uint64_t latest_pass(const struct oom *o, uint64_t since)
{
	const struct snapshot *s = &o->shot;
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		const struct position *born = model_born(s->model, b);

		if (born->stage == STAGE_FORWARD && born->forwards == s->model->spans.forwards &&
		    b->seq >= since && b->seq < first)
			first = b->seq;
	}
	return first == UINT64_MAX ? o->refusal.event.seq : first;
}

/* An evaluation stands behind its step's optimizer: its first event. */
static uint64_t evaluation_begin(const struct oom *o)
{
	const struct timeline *t = o->timeline;
	const struct span *first = t->model.spans.items;
	const struct span *at = steps_span(&t->steps, &t->model.spans, o->refusal.event.seq);

	while (at > first && (at[-1].phase == PHASE_EVALUATION || at[-1].phase == PHASE_OTHER))
		at--;
	return at->extent.first_seq;
}

void oom_find_since(struct oom *o, size_t passes_before)
{
	uint64_t step = o->phase == PHASE_EVALUATION
				? evaluation_begin(o)
				: o->timeline->steps.items[o->step].extent.first_seq;

	o->since = step;
	/* The first step's batch may be made before it. */
	o->begin = o->step > 1 || o->phase == PHASE_EVALUATION ? step : 0;
	o->passes = oom_passes(&o->shot, step);
	o->by_pass = passes_before && o->phase != PHASE_BACKWARD && o->passes >= FEWEST &&
		     o->passes > 2 * passes_before;
	if (o->by_pass)
		o->since = latest_pass(o, step);
}
