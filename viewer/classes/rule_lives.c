/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on how long a block lived and where it ended. Where autograd's tags are there they only
 * fill gaps; without tags they carry the answer, with less confidence.
 */
#include "rules.h"

/* It saw the end of the backward pass it was born in. */
static bool block_lived_past_backward(const struct classifier *c, const struct block *b)
{
	(void)c;
	if (!b->died_seq)
		return true;
	return !stage_is_backward(b->died_stage) || b->died_backward > b->born_backward;
}

/* It was there when the next pass had begun. */
bool block_lived_on(const struct classifier *c, const struct block *b)
{
	return !b->died_seq || b->died_forward > b->born_forward ||
	       (!c->m->forwards && b->died_backward > b->born_backward);
}

/* Born in backward and kept when it was over: what else stays is a gradient, save for what a later
 * backward pass gives up: that belonged to a graph which backward made. */
bool life_gradient(struct classifier *c, const struct block *b)
{
	return !c->m->tags && b->stage == STAGE_BACKWARD && block_lived_past_backward(c, b) &&
	       !(b->died_seq && stage_is_backward(b->died_stage));
}

/* Made in backward, and freed where gradients are cleared; or of a stack whose blocks are. */
bool life_cleared(struct classifier *c, const struct block *b)
{
	if (b->stage != STAGE_BACKWARD || b->saved || !block_lived_past_backward(c, b))
		return false;
	return b->died_stage == STAGE_ZERO_GRAD ||
	       (!b->died_seq && model_has_habit(c->m, b->stack, HABIT_CLEARED));
}

/* It took the place of what a module made: a buffer if that was one. */
bool life_heir(struct classifier *c, const struct block *b)
{
	return b->heir_signs & STACK_PARAM && !(b->tags & BLOCK_GRAD) &&
	       !(place_of_python(c, b->heir_stack) & PLACE_BUFFER);
}

/* Born in forward, given up by backward. */
bool life_activation(struct classifier *c, const struct block *b)
{
	if (c->m->tags || !b->died_seq || !stage_is_backward(b->died_stage))
		return false;
	if (b->stage == STAGE_OUTSIDE && b->signs & STACK_PARAM)
		return false;
	return b->stage == STAGE_FORWARD || b->stage == STAGE_OUTSIDE ||
	       b->stage == STAGE_RECOMPUTE || b->died_backward > b->born_backward;
}

/* Given up inside a later forward pass, or appended to and given up after the next one: by itself
 * or, if it still lives, by those that its stack made before. */
bool life_cache(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	if (b->stage != STAGE_FORWARD || b->save_ns || until != b->born_backward)
		return false;
	if (model_went_on(b) || (!b->died_seq && model_has_habit(c->m, b->stack, HABIT_WENT_ON)))
		return true;
	return (b->died_seq ? model_was_kept(b) : model_has_habit(c->m, b->stack, HABIT_KEPT)) &&
	       place_of_native(c, b) & PLACE_CAT;
}

/* It took the place of what an optimizer kept: state that grows with its parameter. */
bool life_heir_state(struct classifier *c, const struct block *b)
{
	return b->heir_signs & STACK_STATE && block_lived_on(c, b);
}

/* Computed by the script before a forward pass, from nothing that a module gave, and alive in it:
 * the batch in another form. */
bool life_prepared(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_forward : c->m->forwards;

	if (b->stage != STAGE_OUTSIDE || b->after_forward || b->tags & BLOCK_GRAPH ||
	    !(b->signs & STACK_PYTHON) ||
	    b->signs & (STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE | STACK_BUCKET))
		return false;
	return until > b->born_forward && !(b->died_seq && stage_is_backward(b->died_stage));
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
	       (until > b->born_backward + !b->after_step || (!b->died_seq && !b->born_backward));
}

bool life_copied_gradients(struct classifier *c, const struct block *b)
{
	return is_of_the_script(b) && is_of_a_set(c, b) && b->born_backward && !b->after_step;
}
