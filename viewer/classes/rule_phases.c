/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what ran when a block was born: the optimizer's step, a backward node, a forward pass.
 */
#include <string.h>

#include "rules.h"

bool stage_is_backward(unsigned stage)
{
	return stage == STAGE_BACKWARD || stage == STAGE_RECOMPUTE;
}

/* Born inside an optimizer's step, and it outlived that step: without a range that says where it
 * ended, it lived into the next pass. */
bool phase_state(struct classifier *c, const struct block *b)
{
	uint64_t end = b->step ? model_step_end(c->m, b->step) : 0;

	if (b->stage != STAGE_OPTIMIZER)
		return false;
	if (!b->step)
		return block_lived_on(c, b);
	return end && (!b->died_seq || b->died_seq > end);
}

bool phase_optimizer(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->stage == STAGE_OPTIMIZER || b->signs & STACK_CLIP ||
	       (b->signs & STACK_STATE && b->stage == STAGE_OUTSIDE && !(b->tags & BLOCK_GRAPH));
}

bool phase_backward(struct classifier *c, const struct block *b)
{
	(void)c;
	return stage_is_backward(b->stage);
}

bool phase_forward(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->stage == STAGE_FORWARD;
}

/* Computed by the script itself: it was part of a graph, or soon gone, or its stack says so. */
bool phase_outside(struct classifier *c, const struct block *b)
{
	if (b->signs & STACK_CAPTURE)
		return true;
	if (b->stage != STAGE_OUTSIDE || !(b->signs & STACK_PYTHON) ||
	    !(c->m->forwards || c->m->backwards))
		return false;
	return b->tags & BLOCK_GRAPH || model_is_of_graph(c->m, b) ||
	       (b->died_seq && b->died_backward <= b->born_backward + 1) ||
	       block_is_gathered(c, b) ||
	       ((b->after_forward || !c->m->forwards) &&
		place_of_native(c, b) & (PLACE_COMPUTED | PLACE_CONVERTED));
}
