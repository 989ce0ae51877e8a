/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that begin late: what was there before, without a stack, and how many gradients of
 * each size a backward pass leaves behind. Sizes that match say what the old blocks are.
 */
#include "study.h"

static struct study_size *size_of(struct study *st, uint64_t size)
{
	return map_item(&st->before_ids, size, st->before, st->before_count, st->before_room);
}

bool study_is_old(const struct study *st, const struct history *b)
{
	return b->block.seq <= st->m->state_seq && !b->block.stack && !b->block.memory;
}

/* A block of a backward pass has died, or is there at the end: one more that the pass left. */
static void note_end(struct study *st, const struct history *b)
{
	struct study_size *s;

	if (b->stage != STAGE_BACKWARD || b->block.memory ||
	    (b->block.died_seq && b->died_stage == STAGE_BACKWARD))
		return;
	s = size_of(st, b->block.size);
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
	for (int d = 0; st->m->state_seq && !st->m->tags && !st->settled && d < MODEL_DEVICES;
	     d++) {
		LIVE_EACH(&st->m->devices[d].live, b)
		{
			note_end(st, b);
			if (study_is_old(st, b))
				b->concluded.rank = ++size_of(st, b->block.size)->standing;
		}
	}
	st->settled = true;
}

const struct study_size *study_size_of(const struct study *st, uint64_t size)
{
	const uint32_t *at = map_get(&st->before_ids, size);

	return at ? &st->before[*at] : NULL;
}
