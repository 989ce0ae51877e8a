/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for blocks from before the recording, which have no stack: by the stage that freed them,
 * and by whether there are as many of their size as a backward pass makes gradients.
 */
#include "rules.h"
#include "thresholds.h"
#include "study.h"

bool study_is_old(const struct study *st, const struct history *b)
{
	return b->block.seq <= st->m->state_seq && !b->block.stack && !b->block.memory;
}

/* The block's size, from 10 MiB on rounded up to a multiple of 2 MiB, like its segment: the rest
 * might not be split off, and a weight with a rest has the size of its gradient without one. */
static uint64_t size_of(const struct history *b)
{
	uint64_t size = b->block.size;

	return size < 10u << 20 ? size : (size + (2u << 20) - 1) >> 21 << 21;
}

/* Counts a block that its backward pass left, when it dies or at the end of the recording. */
static void note_end(struct study *st, const struct history *b)
{
	struct study_size *s;

	if (b->stage != STAGE_BACKWARD || b->block.memory ||
	    (b->block.died_seq && b->died_stage == STAGE_BACKWARD))
		return;
	s = map_item(&st->before, size_of(b));
	s->now = s->backward == b->born_backward ? s->now + 1 : 1;
	s->backward = b->born_backward;
	if (s->now > s->most)
		s->most = s->now;
}

void study_old_end(struct study *st, const struct history *b)
{
	if (st->m->state_seq && !st->m->tags)
		note_end(st, b);
}

void study_settle_old(struct study *st)
{
	bool all = st->m->state_seq && !st->m->tags && !st->settled;

	for (int d = 0; all && d < MODEL_DEVICES; d++)
		LIVE_EACH (&st->m->devices[d].live, b) {
			note_end(st, b);
			if (b->stage == STAGE_OPTIMIZER &&
			    (b->signs & STACK_STATE || spans_step_end(&st->m->spans, b->step).seq))
				st->makes_state = true;
		}
	for (int d = 0; all && d < MODEL_DEVICES; d++)
		LIVE_EACH (&st->m->devices[d].live, b)
			if (study_is_old(st, b))
				b->concluded.rank = ++map_item(&st->before, size_of(b))->standing;
	FOR_EACH (const struct study_size, s, st->before.items, all ? st->before.count : 0)
		if (s->most && s->standing > (1 + STATES_MOST) * s->most)
			st->mixed = true;
	st->settled = true;
}

/* An optimizer that makes its state anew in each step frees the old state there. */
bool before_state(struct classifier *c, const struct history *h)
{
	return study_is_old(c->study, h) && life_ended_in(h, STAGE_OPTIMIZER);
}

bool before_gradient(struct classifier *c, const struct history *h)
{
	return study_is_old(c->study, h) && life_ended_in(h, STAGE_ZERO_GRAD);
}

/* Gradients of the block's size that one backward pass left behind. */
static uint32_t gradients_of(const struct classifier *c, const struct history *h)
{
	const struct study_size *s = map_find(&c->study->before, size_of(h));

	return s ? s->most : 0;
}

static bool stands(const struct classifier *c, const struct history *h)
{
	return !c->m->tags && study_is_old(c->study, h) && h->concluded.rank;
}

bool study_has_weight_like(const struct study *st, const struct history *h)
{
	const struct study_size *s = map_find(&st->before, size_of(h));

	return study_size_is_of_weight(st, h->block.size) || (s && s->standing);
}

/* Alive when the program's objects were recorded: its parameters are known then. Gradients that
 * came or went meanwhile are not. */
static bool was_asked_for(const struct classifier *c, const struct history *h)
{
	return c->m->held && !life_ended(h);
}

/* Beyond the number of gradients, old blocks of a size are state: the model is made first, and an
 * optimizer keeps up to two tensors for each weight. If it makes its state in the recording, or
 * there are more blocks, some are other weights (averages, a reference), which look the same. */
bool before_rest(struct classifier *c, const struct history *h)
{
	uint32_t n = gradients_of(c, h);

	return stands(c, h) && n && !c->study->makes_state && !c->study->mixed &&
	       h->concluded.rank > n;
}

/* The first old blocks of a size, as many as it has gradients; without any they stay unknown. */
bool before_weight(struct classifier *c, const struct history *h)
{
	return stands(c, h) && !was_asked_for(c, h) && h->concluded.rank <= gradients_of(c, h);
}

bool before_workspace(struct classifier *c, const struct history *h)
{
	return stands(c, h) && h->block.size == CUBLAS_BYTES;
}
