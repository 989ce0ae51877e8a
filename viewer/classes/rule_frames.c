/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on the functions of the stack that a block was born with. */
#include "rules.h"
#include "thresholds.h"

static bool is_module_memory(const struct history *h)
{
	return life_made_by(h, STACK_PARAM | STACK_COPY) && !life_made_by(h, STACK_BUCKET) &&
	       !life_born_in_backward(h) && h->stage != STAGE_OPTIMIZER;
}

/* A plain attribute of a module is a buffer in all but name. */
static bool is_attribute(struct classifier *c, const struct history *h)
{
	uint32_t place = place_of_script(c, h);

	return place & PLACE_ATTRIBUTE && !(place & (PLACE_PARAMETER | PLACE_LEAF));
}

/* A table that a module's own method makes before any pass: caches, masks, angles. */
static bool is_set_up(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_METHOD) && !life_tagged(h, ANY_TAG) && life_is_early(h) &&
	       life_lived_on(c, h) && is_attribute(c, h);
}

/* Angles and masks that a module computes for itself while it is made. */
static bool is_table(struct classifier *c, const struct history *h)
{
	return place_of_python(c, h->block.stack) & PLACE_TABLE &&
	       place_of_native(c, h) & PLACE_COMPUTED;
}

bool frame_buffer(struct classifier *c, const struct history *h)
{
	if (life_tagged(h, BLOCK_LEAF))
		return false;
	if (!is_module_memory(h))
		return h->stage == STAGE_OUTSIDE &&
		       (place_of_script(c, h) & PLACE_BUFFER || is_set_up(c, h));
	return (life_made_by(h, STACK_COPY) && !life_made_by(h, STACK_PARAM)) ||
	       place_of_python(c, h->block.stack) & PLACE_BUFFER || is_attribute(c, h) ||
	       is_table(c, h);
}

/* Memory that a forward pass allocates once, and later passes use again. */
static bool is_room_for_passes(struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_FORWARD && !life_ever_saved(h) &&
	       life_last_forward(c, h) > h->born_forward + 1 && place_of_native(c, h) & PLACE_MAKER;
}

/* Keys and values that the script keeps, or a module in plain attributes, made with it or in its
 * first pass. */
bool frame_named_cache(struct classifier *c, const struct history *h)
{
	if (life_tagged(h, ANY_TAG) || !(place_of_script(c, h) & PLACE_CACHE) ||
	    place_of_python(c, h->block.stack) & PLACE_BUFFER)
		return false;
	if (is_room_for_passes(c, h))
		return true;
	return is_module_memory(h) ? is_attribute(c, h)
				   : h->stage == STAGE_OUTSIDE && life_lived_on(c, h) &&
					     place_of_native(c, h) & PLACE_MAKER;
}

/* A block that the script itself calls a gradient. */
bool frame_gradient(struct classifier *c, const struct history *h)
{
	if (life_tagged(h, BLOCK_LEAF) || life_made_by(h, STACK_PARAM) ||
	    (h->stage != STAGE_OUTSIDE && h->stage != STAGE_OPTIMIZER))
		return false;
	return place_of_script(c, h) & PLACE_GRAD;
}

/* Gradients for copies of the weights, made by an optimizer around another one. */
static bool is_wider_gradient(struct classifier *c, const struct history *h)
{
	return !h->step && place_of_script(c, h) & PLACE_NAMED_GRAD &&
	       place_of_native(c, h) & (PLACE_CONVERTED | PLACE_CAT);
}

/* Memory that an object keeps for gradients: "self.grad_data = torch.zeros(...)". */
static bool is_room_for_gradients(struct classifier *c, const struct history *h)
{
	return place_of_script(c, h) & PLACE_ATTRIBUTE && place_of_native(c, h) & PLACE_ROOM;
}

/* Partitions and buffers that gradients are copied or reduced into, by an optimizer around another
 * or by hooks in backward. */
bool frame_gradient_partition(struct classifier *c, const struct history *h)
{
	if (h->stage == STAGE_OPTIMIZER)
		return is_wider_gradient(c, h);
	if (h->stage == STAGE_FORWARD || life_tagged(h, ~BLOCK_GRAD) ||
	    !life_lived_past_backward(h))
		return false;
	if (life_made_by(h, STACK_GRADS) && !life_made_by(h, STACK_PARAM))
		return life_born_in_backward(h) || life_lived_on(c, h);
	return h->stage == STAGE_OUTSIDE && life_lived_on(c, h) &&
	       place_of_script(c, h) & PLACE_NAMED_GRAD &&
	       (is_room_for_gradients(c, h) ||
		(life_made_by(h, STACK_STATE) && !life_made_by(h, STACK_PARAM)));
}

/* Without tags: the script asks for a gradient of what it makes before any backward pass, or
 * calls it a parameter, and keeps it. */
bool frame_leaf(struct classifier *c, const struct history *h)
{
	uint32_t wanted = h->born_backward ? PLACE_PARAMETER : PLACE_LEAF;
	uint32_t least = h->born_backward ? h->born_backward : LEAF_PASSES;

	if (c->m->tags || h->stage != STAGE_OUTSIDE || life_made_by(h, STACK_DATA | STACK_STATE))
		return false;
	return (!life_ended(h) || life_last_backward(c, h) > least) &&
	       place_of_script(c, h) & wanted;
}

/* Weights that autograd never saw as leaves: frozen, copied, or used without gradients. */
bool frame_parameter(struct classifier *c, const struct history *h)
{
	return is_module_memory(h) && !frame_buffer(c, h);
}

/* A module whose backward updates its weights, such as a table of embeddings, keeps the state of
 * its optimizer beside them. */
bool frame_fused_state(struct classifier *c, const struct history *h)
{
	return is_module_memory(h) && !life_tagged(h, BLOCK_LEAF | BLOCK_GRAPH) &&
	       place_of_python(c, h->block.stack) & PLACE_STATE &&
	       place_of_native(c, h) & PLACE_ROOM;
}

bool frame_unsharded(UNUSED struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_UNSHARDED);
}

/* State that an optimizer makes outside of its step, not intermediate results of its methods. */
bool frame_state(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_STATE) && h->stage != STAGE_FORWARD &&
	       h->stage != STAGE_OPTIMIZER && !block_is_bucket(c, h) &&
	       !(h->stage == STAGE_BACKWARD && life_tagged(h, BLOCK_GRAD)) &&
	       (h->stage != STAGE_OUTSIDE || life_lived_on(c, h));
}

/* A tensor that the script computed, in another type. */
static bool is_of_computed(struct classifier *c, const struct history *h)
{
	const uint32_t *of = map_get(&c->study->made_of, h->block.stack);

	return of && place_of_native(c, h) & PLACE_CONVERTED &&
	       !(place_of_stack(c, *of, h->block.seq) & PLACE_MAKER);
}

/* True if a pass began during its life or that of others of its stack, if it comes from the host,
 * or if a model has not run yet. Memory that a script only holds is no input. */
static bool is_for_a_pass(struct classifier *c, const struct history *h)
{
	if (life_saw_forward(c, h) || life_saw_backward(c, h) || life_made_by(h, STACK_DATA) ||
	    place_of_native(c, h) & PLACE_MOVED ||
	    study_has_habit(c->study, h->block.stack, HABIT_READ))
		return true;
	return !c->m->spans.forwards && !c->m->spans.backwards && study_has_model(c->study) &&
	       !(h->concluded.used & USED_OF_WEIGHT) && !is_of_computed(c, h);
}

/* Made or copied to the device by the script itself, not computed. */
bool frame_made_outside(struct classifier *c, const struct history *h)
{
	if (h->stage != STAGE_OUTSIDE || life_tagged(h, BLOCK_GRAPH) ||
	    life_made_by(h, STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE))
		return false;
	if (block_is_gathered(c, h) || block_holds_results(c, h) || life_converts_result(c, h))
		return false;
	return place_of_native(c, h) & PLACE_MAKER && !(place_of_native(c, h) & PLACE_CAST) &&
	       !block_is_of_graph_alone(c, h) && is_for_a_pass(c, h);
}

/* A model that can generate fills a cache in training too, but that one ends with its pass. */
bool frame_cache(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_CACHE) && !life_ever_saved(h) &&
	       (h->stage != STAGE_FORWARD || !life_saw_backward(c, h));
}

bool frame_workspace(struct classifier *c, const struct history *h)
{
	return !life_tagged(h, ANY_TAG) && place_of_native(c, h) & PLACE_WORKSPACE;
}

bool frame_communication(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_COLLECTIVE) || block_is_bucket(c, h) ||
	       place_of_native(c, h) & PLACE_NETWORK;
}
