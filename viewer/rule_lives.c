/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on how long a block lived and where it ended. Where autograd's tags are there they only
 * fill gaps; without tags they carry the answer, with less confidence.
 */
#include "rules.h"

/* It saw the end of the backward pass it was born in. */
bool block_lived_past_backward(const struct classifier *c, const struct block *b)
{
	(void)c;
	if (!b->died_seq)
		return true;
	return !stage_is_backward(b->died_stage) || b->died_backward > b->born_backward;
}

/* Born in backward and kept when it was over: what else stays is a gradient. */
bool life_gradient(struct classifier *c, const struct block *b)
{
	return !c->m->tags && b->stage == STAGE_BACKWARD && block_lived_past_backward(c, b);
}

/* Born in forward, given up by backward. */
bool life_activation(struct classifier *c, const struct block *b)
{
	if (c->m->tags || !b->died_seq || !stage_is_backward(b->died_stage))
		return false;
	if (b->stage == STAGE_OUTSIDE && b->signs & STACK_PARAM)
		return false;
	return b->stage == STAGE_FORWARD || b->stage == STAGE_OUTSIDE ||
	       b->stage == STAGE_RECOMPUTE;
}

/* Born in one forward pass, given up inside the next one or a later: its successor took over. */
static bool went_on(const struct block *b)
{
	return b->stage == STAGE_FORWARD && b->died_seq && b->died_stage == STAGE_FORWARD &&
	       b->died_forward > b->born_forward && !b->save_ns;
}

bool life_cache(struct classifier *c, const struct block *b)
{
	if (b->stage != STAGE_FORWARD || b->save_ns || b->died_backward != b->born_backward)
		return false;
	return went_on(b) || (!b->died_seq && model_hands_on(c->m, b->stack));
}

/* There before anything was computed, never freed, by no module. */
bool life_parameter(struct classifier *c, const struct block *b)
{
	return !c->m->tags && b->stage == STAGE_OUTSIDE && !b->died_seq && !b->born_backward &&
	       c->m->backwards > 1;
}

/* Buckets hold the gradients themselves if those that arrive die at once: from the first that
 * arrives until they are cleared. */
bool life_bucket(struct classifier *c, const struct block *b)
{
	const struct model *m = c->m;

	return b->signs & STACK_BUCKET && b->grads_live && !b->tags &&
	       (m->tags ? m->grads_gone > m->grads_kept : m->grads_gone > 16 * m->grads_kept);
}

bool life_reduced(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_REDUCED && block_lived_past_backward(c, b);
}

/* Most blocks that this stack made are as large as a parameter each, and not all alike. */
static bool is_of_a_set(const struct classifier *c, const struct block *b)
{
	const struct model_set *s = model_set_of(c->m, b->stack);

	return s && s->blocks > 1 && s->changes > 1 && s->alike * 4 >= s->blocks * 3;
}

static bool is_of_the_script(const struct block *b)
{
	return b->stage == STAGE_OUTSIDE && !(b->tags & ~BLOCK_GRAD) &&
	       !(b->signs & (STACK_PARAM | STACK_BUCKET | STACK_COLLECTIVE | STACK_DATA |
			     STACK_CLIP | STACK_LOAD | STACK_STATE | STACK_CAPTURE));
}

/* Kept over at least one whole step, or for good. */
bool life_copies(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	return is_of_the_script(b) && is_of_a_set(c, b) &&
	       (until > b->born_backward + 1 || (!b->died_seq && !b->born_backward));
}

bool life_copied_gradients(struct classifier *c, const struct block *b)
{
	return is_of_the_script(b) && is_of_a_set(c, b) && b->born_backward;
}
