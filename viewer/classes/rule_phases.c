/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what ran when a block was born: the optimizer's step, a backward node, a forward pass.
 */
#include "rules.h"

/* Born inside an optimizer's step, and it outlived that step: without a range that says where it
 * ended, it lived into the next pass. */
bool phase_state(struct classifier *c, const struct history *h)
{
	uint64_t end = life_step(h) ? spans_step_end(&c->m->spans, life_step(h)) : 0;

	if (!life_born_in(h, STAGE_OPTIMIZER))
		return false;
	if (!life_step(h))
		return life_lived_on(c, h);
	return end && life_lived_past(h, end);
}

bool phase_optimizer(struct classifier *c, const struct history *h)
{
	(void)c;
	return life_born_in(h, STAGE_OPTIMIZER) || life_made_by(h, STACK_CLIP) ||
	       (life_made_by(h, STACK_STATE) && life_born_in(h, STAGE_OUTSIDE) &&
		!life_tagged(h, BLOCK_GRAPH));
}

bool phase_backward(struct classifier *c, const struct history *h)
{
	(void)c;
	return life_born_in_backward(h);
}

bool phase_forward(struct classifier *c, const struct history *h)
{
	(void)c;
	return life_born_in(h, STAGE_FORWARD);
}

/* Computed by the script itself: it was part of a graph, or soon gone, or its stack says so. */
bool phase_outside(struct classifier *c, const struct history *h)
{
	if (life_made_by(h, STACK_CAPTURE))
		return true;
	if (!life_born_in(h, STAGE_OUTSIDE) || !life_made_by(h, STACK_PYTHON) ||
	    !(c->m->spans.forwards || c->m->spans.backwards))
		return false;
	return life_tagged(h, BLOCK_GRAPH) || study_is_of_graph(c->study, h) ||
	       (life_ended(h) && life_last_backward(c, h) <= life_first_backward(h) + 1) ||
	       block_is_gathered(c, h) ||
	       ((life_born_after_forward(h) || !c->m->spans.forwards) &&
		place_of_native(c, h) & (PLACE_COMPUTED | PLACE_CONVERTED));
}
