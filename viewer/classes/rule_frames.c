/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on the functions of the stack that a block was born with. */
#include "rules.h"
#include "thresholds.h"

static bool is_module_memory(const struct block *b)
{
	return b->signs & (STACK_PARAM | STACK_COPY) && !(b->signs & STACK_BUCKET) &&
	       !stage_is_backward(b->stage) && b->stage != STAGE_OPTIMIZER;
}

/* A plain attribute of a module is a buffer in all but name. */
static bool is_attribute(struct classifier *c, const struct block *b)
{
	uint32_t place = place_of_script(c, b);

	return place & PLACE_ATTRIBUTE && !(place & (PLACE_PARAMETER | PLACE_LEAF));
}

/* A table that a module makes of itself before anything runs: caches, masks, angles. */
static bool is_set_up(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_METHOD && !b->tags && !b->born_forward && !b->born_backward &&
	       block_lived_on(c, b) && is_attribute(c, b);
}

bool frame_buffer(struct classifier *c, const struct block *b)
{
	if (b->tags & BLOCK_LEAF)
		return false;
	if (!is_module_memory(b))
		return b->stage == STAGE_OUTSIDE &&
		       (place_of_script(c, b) & PLACE_BUFFER || is_set_up(c, b));
	return (b->signs & STACK_COPY && !(b->signs & STACK_PARAM)) ||
	       place_of_python(c, b->stack) & PLACE_BUFFER || is_attribute(c, b);
}

/* Keys and values kept as plain attributes of a module, made with it; or by the script. */
bool frame_named_cache(struct classifier *c, const struct block *b)
{
	if (b->tags || !(place_of_script(c, b) & PLACE_CACHE) ||
	    place_of_python(c, b->stack) & PLACE_BUFFER)
		return false;
	return is_module_memory(b) ? is_attribute(c, b)
				   : b->stage == STAGE_OUTSIDE && block_lived_on(c, b) &&
					     place_of_native(c, b) & PLACE_MAKER;
}

/* What the script itself calls a gradient. */
bool frame_gradient(struct classifier *c, const struct block *b)
{
	if (b->tags & BLOCK_LEAF || b->signs & STACK_PARAM ||
	    (b->stage != STAGE_OUTSIDE && b->stage != STAGE_OPTIMIZER))
		return false;
	return place_of_script(c, b) & PLACE_GRAD;
}

/* In a step around that of another optimizer: gradients for its copies of the weights. */
static bool is_wider_gradient(struct classifier *c, const struct block *b)
{
	return place_of_native(c, b) & (PLACE_CONVERTED | PLACE_CAT) &&
	       place_of_script(c, b) & PLACE_NAMED_GRAD && !b->step;
}

/* Partitions and buffers that gradients are copied or reduced into, by an optimizer around another
 * or by hooks in backward. */
bool frame_gradient_partition(struct classifier *c, const struct block *b)
{
	if (b->stage == STAGE_OPTIMIZER)
		return is_wider_gradient(c, b);
	if (b->stage == STAGE_FORWARD || b->signs & STACK_PARAM || b->tags & ~BLOCK_GRAD ||
	    !block_lived_past_backward(c, b))
		return false;
	if (b->signs & STACK_GRADS)
		return stage_is_backward(b->stage) || block_lived_on(c, b);
	return b->signs & STACK_STATE && b->stage == STAGE_OUTSIDE && block_lived_on(c, b) &&
	       place_of_script(c, b) & PLACE_NAMED_GRAD;
}

/* Without tags: the script asks for a gradient of what it makes before any backward pass, or
 * calls it a parameter, and keeps it. */
bool frame_leaf(struct classifier *c, const struct block *b)
{
	uint32_t wanted = b->born_backward ? PLACE_PARAMETER : PLACE_LEAF;
	uint32_t least = b->born_backward ? b->born_backward : LEAF_PASSES;

	if (c->m->tags || b->stage != STAGE_OUTSIDE || b->signs & (STACK_DATA | STACK_STATE))
		return false;
	return (!b->died_seq || b->died_backward > least) && place_of_script(c, b) & wanted;
}

/* Frozen weights, copies, what runs without gradients. */
bool frame_parameter(struct classifier *c, const struct block *b)
{
	return is_module_memory(b) && !frame_buffer(c, b);
}

/* What is only copied on from a file is soon gone. */
bool frame_loaded(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->signs & STACK_LOAD && b->stage == STAGE_OUTSIDE && !b->save_ns &&
	       (!b->died_seq || b->died_forward > b->born_forward + 1);
}

bool frame_unsharded(struct classifier *c, const struct block *b)
{
	(void)c;
	return b->signs & STACK_UNSHARDED;
}

/* What its other methods make and give up at once is a step on the way. */
bool frame_state(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_STATE && b->stage != STAGE_FORWARD && b->stage != STAGE_OPTIMIZER &&
	       !block_is_bucket(c, b) && !(b->stage == STAGE_BACKWARD && b->tags & BLOCK_GRAD) &&
	       (b->stage != STAGE_OUTSIDE || block_lived_on(c, b));
}

/* Made or copied to the device by the script itself, not computed. */
bool frame_made_outside(struct classifier *c, const struct block *b)
{
	if (b->stage != STAGE_OUTSIDE || b->tags & BLOCK_GRAPH ||
	    b->signs & (STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE))
		return false;
	if (block_is_gathered(c, b) || block_is_narrowed(c, b))
		return false;
	return place_of_native(c, b) & PLACE_MAKER && !(place_of_native(c, b) & PLACE_CAST) &&
	       !block_is_of_graph_alone(c, b);
}

/* Models that could generate fill a cache while they train as well: that one ends with its pass. */
bool frame_cache(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	return b->signs & STACK_CACHE && !b->save_ns &&
	       (b->stage != STAGE_FORWARD || until == b->born_backward);
}

bool frame_workspace(struct classifier *c, const struct block *b)
{
	return !b->tags && place_of_native(c, b) & PLACE_WORKSPACE;
}

bool frame_communication(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_COLLECTIVE || block_is_bucket(c, b) ||
	       place_of_native(c, b) & PLACE_NETWORK;
}
