/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what autograd itself said: exact, where it speaks at all. */
#include "rules.h"
#include "../../format/record.h"
#include "thresholds.h"

static bool is_computed_input(struct classifier *c, const struct history *h)
{
	return uses_known(c->m) && !c->study->update_count && !c->m->spans.steps &&
	       study_has_model(c->study) && h->concluded.used & USED_IN_FORWARD &&
	       !(place_of_script(c, h) & PLACE_PARAMETER) && place_of_native(c, h) & PLACE_COMPUTED;
}

/*
 * A leaf in memory that a module made, or a gathered one, is a parameter. One made elsewhere is if
 * more than one pass used it or the statement says so; an input may require grad too, but lives for
 * one, or through updates that do not touch it. What forward or backward computed is a result that
 * was cut off its graph, and so is what the script computed where nothing is ever updated.
 */
bool tag_parameter(struct classifier *c, const struct history *h)
{
	if (!life_tagged(h, BLOCK_LEAF))
		return false;
	if (life_made_by(h, STACK_PARAM | STACK_UNSHARDED))
		return true;
	if (h->stage == STAGE_FORWARD || life_born_in_backward(h) ||
	    study_passed_over(c->study, h) || is_computed_input(c, h))
		return false;
	return h->facts.leaf_passes > 1 || c->m->spans.backwards <= 1 ||
	       place_of_script(c, h) & PLACE_PARAMETER ||
	       (h->facts.arrivals > 1 &&
		(!life_ended(h) || h->died_backward > h->born_backward + LEAF_PASSES));
}

/* What the program's own objects hold; it was asked for that while it ran (`attach`). */
#define HELD(rule, as)                                                   \
	bool rule(UNUSED struct classifier *c, const struct history *h)  \
	{                                                                \
		return life_tagged(h, (unsigned)BLOCK_HELD << (as - 1)); \
	}
HELD(held_parameter, GMT_HELD_PARAMETER)
HELD(held_gradient, GMT_HELD_GRADIENT)
HELD(held_state, GMT_HELD_STATE)
HELD(held_buffer, GMT_HELD_BUFFER)
HELD(held_cache, GMT_HELD_CACHE)
#undef HELD

bool tag_gradient(UNUSED struct classifier *c, const struct history *h)
{
	return life_tagged(h, BLOCK_GRAD);
}

/*
 * Saved though no differentiable operation made it, and born outside of every module. What is
 * computed, not made or copied, after a forward pass comes from that pass: a teacher's answer.
 */
bool tag_input(struct classifier *c, const struct history *h)
{
	if (h->stage != STAGE_OUTSIDE || life_made_by(h, STACK_PARAM | STACK_CACHE))
		return false;
	if (life_tagged(h, BLOCK_LEAF))
		return true;
	if (!life_tagged(h, BLOCK_PLAIN) || life_tagged(h, BLOCK_GRAPH) ||
	    block_is_of_graph_alone(c, h) || place_of_native(c, h) & PLACE_CAST)
		return false;
	return !h->after_forward || !(place_of_native(c, h) & PLACE_COMPUTED);
}

/* Without its stack nothing says that a module made it, but a batch does not live that long. */
bool bare_weight(struct classifier *c, const struct history *h)
{
	return !h->block.stack && !h->born_backward && life_tagged(h, BLOCK_PLAIN) &&
	       !life_tagged(h, BLOCK_GRAPH) && life_last_backward(c, h) > BATCH_PASSES;
}

/* A copy of a weight may be as large, but backward does not read it. */
bool bare_workspace(UNUSED struct classifier *c, const struct history *h)
{
	bool size = h->block.size == CUBLAS_BYTES || h->block.size == CUBLAS_HOPPER_BYTES;

	return size && !h->block.stack && !life_ended(h) && !life_tagged(h, ANY_TAG) &&
	       h->concluded.used & USED_IN_BACKWARD;
}

bool tag_saved(UNUSED struct classifier *c, const struct history *h)
{
	return life_saved(h);
}

/* Saved through a hook, so that no release is recorded: it counts from its birth until it dies in
 * backward. Checkpointing keeps its inputs so, and what it computes again. */
bool tag_packed(struct classifier *c, const struct history *h)
{
	if (!life_tagged(h, BLOCK_PACKED))
		return false;
	if (h->stage == STAGE_RECOMPUTE)
		return true;
	return life_ended(h) ? life_ended_in_backward(h)
			     : h->born_backward + h->facts.save_backwards == c->m->spans.backwards;
}

/* Just born: the operation that made it saves it in a moment, in the same pass. */
bool tag_saved_soon(UNUSED struct classifier *c, const struct history *h)
{
	return life_ever_saved(h) && !(h->block.state & (LIFE_SAVED | LIFE_SAVED_BEFORE)) &&
	       !life_tagged(h, BLOCK_PACKED) && !h->facts.save_backwards && !h->facts.save_steps;
}
