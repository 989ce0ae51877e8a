/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that begin late: what was there before, without a stack, and how many gradients of
 * each size a backward pass leaves behind. Sizes that match say what the old blocks are.
 */
#include "../base/need.h"
#include "model_parts.h"

static struct model_size *size_of(struct model *m, uint64_t size)
{
	bool fresh;
	uint32_t *at = map_put(&m->before_ids, size, &fresh);

	if (fresh) {
		m->before =
			need_grow(m->before, &m->before_room, m->before_count, sizeof(*m->before));
		*at = m->before_count++;
		m->before[*at] = (struct model_size){ 0 };
	}
	return &m->before[*at];
}

bool model_is_before(const struct model *m, const struct history *b)
{
	return b->block.seq <= m->state_seq && !b->block.stack && !b->block.memory;
}

/* A block of a backward pass has died, or is there at the end: one more that the pass left. */
static void note_end(struct model *m, const struct history *b)
{
	struct model_size *s;

	if (b->stage != STAGE_BACKWARD || b->block.memory ||
	    (b->block.died_seq && b->died_stage == STAGE_BACKWARD))
		return;
	s = size_of(m, b->block.size);
	s->now = s->backward == b->born_backward ? s->now + 1 : 1;
	s->backward = b->born_backward;
	if (s->now > s->most)
		s->most = s->now;
}

void model_note_before_end(struct model *m, const struct history *b)
{
	if (m->state_seq && !m->tags)
		note_end(m, b);
}

void model_settle_before(struct model *m)
{
	for (int d = 0; m->state_seq && !m->tags && !m->settled && d < MODEL_DEVICES; d++) {
		LIVE_EACH(&m->devices[d].live, b)
		{
			note_end(m, b);
			if (model_is_before(m, b))
				b->rank = ++size_of(m, b->block.size)->standing;
		}
	}
	m->settled = true;
}

const struct model_size *model_before_of(const struct model *m, uint64_t size)
{
	const uint32_t *at = map_get(&m->before_ids, size);

	return at ? &m->before[*at] : NULL;
}
