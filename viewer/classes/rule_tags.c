/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what autograd itself said: exact, where it speaks at all. */
#include "rules.h"
#include "thresholds.h"

/*
 * A leaf in memory that a module made, or a gathered one, is a parameter. One made elsewhere is if
 * more than one pass used it or the statement says so; an input may require grad too, but lives for
 * one. What forward or backward computed is a result that was cut off its graph.
 */
bool tag_parameter(struct classifier *c, const struct block *b)
{
	if (!(b->tags & BLOCK_LEAF))
		return false;
	if (b->signs & (STACK_PARAM | STACK_UNSHARDED))
		return true;
	if (b->stage == STAGE_FORWARD || stage_is_backward(b->stage))
		return false;
	return b->leaf_passes > 1 || c->m->backwards <= 1 ||
	       place_of_script(c, b) & PLACE_PARAMETER ||
	       (b->arrivals > 1 &&
		(!b->died_seq || b->died_backward > b->born_backward + LEAF_PASSES));
}

bool tag_gradient(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->tags & BLOCK_GRAD;
}

/*
 * Saved though no differentiable operation made it, and born outside of every module. What is
 * computed, not made or copied, after a forward pass comes from that pass: a teacher's answer.
 */
bool tag_input(struct classifier *c, const struct block *b)
{
	if (b->stage != STAGE_OUTSIDE || b->signs & (STACK_PARAM | STACK_CACHE))
		return false;
	if (b->tags & BLOCK_LEAF)
		return true;
	if (!(b->tags & BLOCK_PLAIN) || b->tags & BLOCK_GRAPH || block_is_of_graph_alone(c, b) ||
	    place_of_native(c, b) & PLACE_CAST)
		return false;
	return !b->after_forward || !(place_of_native(c, b) & PLACE_COMPUTED);
}

bool tag_saved(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->saved;
}

/* Saved through a hook, so that no release is recorded: it counts from its birth until it dies in
 * backward. Checkpointing keeps its inputs so, and what it computes again. */
bool tag_packed(struct classifier *c, const struct block *b)
{
	if (!(b->tags & BLOCK_PACKED))
		return false;
	if (b->stage == STAGE_RECOMPUTE)
		return true;
	return b->died_seq ? stage_is_backward(b->died_stage) : b->save_backward == c->m->backwards;
}

/* Just born: the operation that made it saves it in a moment, in the same pass. */
bool tag_saved_soon(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->save_ns && !b->saved && !(b->tags & BLOCK_PACKED) && b->save_after_moment &&
	       b->save_backward == b->born_backward && b->save_steps == b->born_steps;
}
