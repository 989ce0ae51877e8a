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

uint64_t oom_evaluation(const struct oom *o)
{
	const struct timeline *t = o->timeline;
	const struct span *at = steps_span(&t->steps, &t->model.spans, o->refusal.event.seq);
	bool evaluates = false;

	for (; at && (at->phase == PHASE_EVALUATION || at->phase == PHASE_OTHER); at--) {
		evaluates |= at->phase == PHASE_EVALUATION;
		if (at == t->model.spans.items ||
		    (at[-1].phase != PHASE_EVALUATION && at[-1].phase != PHASE_OTHER))
			return evaluates ? at->extent.first_seq : 0;
	}
	return 0;
}

void oom_find_since(struct oom *o, size_t passes_before)
{
	uint64_t step = o->evaluation ? o->evaluation : oom_batch_begin(o, o->step);

	o->since = step;
	/* The first step's batch may be made before it. */
	o->begin = o->step > 1 || o->evaluation ? step : 0;
	o->passes = oom_passes(&o->shot, step);
	o->by_pass = passes_before && o->phase != PHASE_BACKWARD && o->passes >= FEWEST &&
		     o->passes > 2 * passes_before;
	if (o->by_pass)
		o->since = latest_pass(o, step);
}
