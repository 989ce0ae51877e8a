/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on the tags from autograd, which are exact where there are any. */
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
 * A leaf in memory that a module made, or a gathered one, is a parameter. A leaf made elsewhere is
 * one if more than one pass used it or its statement makes a Parameter. An input can require grad
 * too, but lives for one pass, or through updates that do not touch it. A leaf computed in forward
 * or backward is a detached result, and so is one that the script computed if nothing is updated.
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

/* Held by the program's own objects, as a snapshot of the running program says (`attach`). */
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
 * Saved although no differentiable operation made it, and born outside of every module. A block
 * that is computed after a forward pass comes from that pass, such as a teacher's output.
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

/* Without a stack there is no evidence of a module, but no batch lives that long. */
bool bare_weight(struct classifier *c, const struct history *h)
{
	return !h->block.stack && !h->born_backward && life_tagged(h, BLOCK_PLAIN) &&
	       !life_tagged(h, BLOCK_GRAPH) && life_last_backward(c, h) > BATCH_PASSES;
}

/* A copy of a weight can be as large, but backward does not read it. */
bool bare_workspace(struct classifier *c, const struct history *h)
{
	bool size = h->block.size == CUBLAS_BYTES || h->block.size == CUBLAS_HOPPER_BYTES;

	return size && !h->block.stack && !life_ended(h) && !life_tagged(h, ANY_TAG) &&
	       (h->concluded.used & USED_IN_BACKWARD ||
		(h->stage == STAGE_BACKWARD && !study_has_weight_like(c->study, h)));
}

bool tag_saved(UNUSED struct classifier *c, const struct history *h)
{
	return life_saved(h);
}

/* Saved through a hook, so that no release is recorded. It counts from its birth on if backward
 * frees it. Checkpointing saves its inputs this way, and what it recomputes. */
bool tag_packed(struct classifier *c, const struct history *h)
{
	if (!life_tagged(h, BLOCK_PACKED))
		return false;
	if (h->stage == STAGE_RECOMPUTE)
		return true;
	return life_ended(h) ? life_ended_in_backward(h)
			     : h->born_backward + h->facts.save_backwards == c->m->spans.backwards;
}

/* Not saved yet: it is saved later in the same pass, mostly by the operation that made it. */
bool tag_saved_soon(UNUSED struct classifier *c, const struct history *h)
{
	return life_ever_saved(h) && !(h->block.state & (LIFE_SAVED | LIFE_SAVED_BEFORE)) &&
	       !life_tagged(h, BLOCK_PACKED) && !h->facts.save_backwards && !h->facts.save_steps;
}
