/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what ran when a block was born: the optimizer's step, a backward node, a forward pass.
 */
#include "rules.h"

/* Born inside an optimizer's step, and it outlived that step. If the step has no range, or memory
 * ran out in it, the block must have lived into the next pass. */
bool phase_state(struct classifier *c, const struct history *h)
{
	struct step_end end = spans_step_end(&c->m->spans, h->step);

	if (h->stage != STAGE_OPTIMIZER)
		return false;
	if (end.refused)
		return life_saw_forward(c, h);
	if (!h->step)
		return life_lived_on(c, h);
	return end.seq && life_lived_past(h, end.seq);
}

/* If the recording or memory ended inside the step, the blocks that it filled or copied are state,
 * unless others of their stack were freed before their step ended. Computed blocks are not. */
bool phase_state_begun(struct classifier *c, const struct history *h)
{
	struct step_end end = spans_step_end(&c->m->spans, h->step);

	if (h->stage != STAGE_OPTIMIZER || !h->step ||
	    study_has_habit(c->study, h->block.stack, HABIT_OF_STEP))
		return false;
	if (end.seq ? !end.refused || !life_lived_past(h, end.seq) : life_ended(h))
		return false;
	return place_of_native(c, h) & (PLACE_MAKER | PLACE_ROWS);
}

bool phase_optimizer(UNUSED struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_OPTIMIZER || life_made_by(h, STACK_CLIP) ||
	       (life_made_by(h, STACK_STATE) && h->stage == STAGE_OUTSIDE &&
		!life_tagged(h, BLOCK_GRAPH));
}

bool phase_backward(UNUSED struct classifier *c, const struct history *h)
{
	return life_born_in_backward(h);
}

bool phase_forward(UNUSED struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_FORWARD;
}

/* Computed by the script itself: part of a graph, or freed soon, or known by its stack. */
bool phase_outside(struct classifier *c, const struct history *h)
{
	if (life_made_by(h, STACK_CAPTURE))
		return true;
	if (h->stage != STAGE_OUTSIDE || !life_made_by(h, STACK_PYTHON) ||
	    !(c->m->spans.forwards || c->m->spans.backwards))
		return false;
	return life_tagged(h, BLOCK_GRAPH) || study_is_of_graph(c->study, h) ||
	       (life_ended(h) && life_last_backward(c, h) <= h->born_backward + 1) ||
	       block_is_gathered(c, h) || block_holds_results(c, h) ||
	       ((h->after_forward || !c->m->spans.forwards) &&
		place_of_native(c, h) & (PLACE_COMPUTED | PLACE_CONVERTED));
}
