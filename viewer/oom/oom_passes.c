/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes inside of one step. A training step holds what a few passes made until backward
 * has used it; an evaluation that holds far more of them keeps what it should let go.
 */
#include "oom.h"

#define FEWEST 4	  /* passes that are many */
#define LATEST (1u << 16) /* lives that are looked at for them */

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

/* Calls of the model since its birth, by the first line that made a result then, were many. */
static bool is_there_through_passes(const struct oom *o, const struct block *b)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t first = lives_born_by(l, b->seq), n = lives_born_by(l, o->refusal.event.seq);
	uint32_t stack = 0, times = 0;

	for (uint32_t i = first; i < n && i - first < LATEST && times < FEWEST; i++) {
		const struct life *row = lives_at(l, i);

		if (lives_position(l, row->born.position)->stage != STAGE_FORWARD)
			continue;
		stack = stack ? stack : lives_request(l, row)->stack;
		times += lives_request(l, row)->stack == stack;
	}
	return times == FEWEST;
}

/* An input of one pass is gone or saved by the next ones: what is there through many and was never
 * saved is what they take rows of, or write their results to. What the script computes in an
 * evaluation may be of the results of all passes, if it is larger than those that are held. */
bool oom_grows_with_batch(const struct oom *o, const struct block *b, enum category c,
			  enum block_stage stage)
{
	if (c == CATEGORY_inputs)
		return !o->shot.model->spans.tags || b->size < o->allocated / 100 ||
		       b->state & (LIFE_SAVED | LIFE_SAVED_BEFORE) ||
		       !is_there_through_passes(o, b);
	if (o->evaluation && stage == STAGE_OUTSIDE && b->size / 2 > o->of_passes)
		return false;
	return oom_is_passing(c);
}

uint64_t oom_asked_for_batch(const struct oom *o)
{
	return oom_grows_with_batch(o, &o->wanted, o->wanted_category, o->wanted_stage) ? o->block
											: 0;
}

void oom_find_since(struct oom *o, size_t passes_before)
{
	uint64_t step =
		o->evaluation ? o->evaluation : o->timeline->steps.items[o->step].extent.first_seq;

	o->since = step;
	/* The first step's batch may be made before it. */
	o->begin = o->step > 1 || o->evaluation ? step : 0;
	o->passes = oom_passes(&o->shot, step);
	o->by_pass = passes_before && o->phase != PHASE_BACKWARD && o->passes >= FEWEST &&
		     o->passes > 2 * passes_before;
	if (o->by_pass)
		o->since = latest_pass(o, step);
}
