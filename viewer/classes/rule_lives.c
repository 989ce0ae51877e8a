/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on how long a block lived and where it ended. Where autograd's tags are there they only
 * fill gaps; without tags they carry the answer, with less confidence.
 */
#include <string.h>

#include "rules.h"

/* It saw the end of the backward pass it was born in. */
bool block_lived_past_backward(const struct classifier *c, const struct block *b)
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

/* The graph alone held it: a step on the way from the batch to the model, noise, labels in another
 * form. A batch that is brought to the device on the way is one all the same. */
bool block_is_of_graph_alone(struct classifier *c, const struct block *b)
{
	uint32_t place;

	if (!b->died_seq || !stage_is_backward(b->died_stage))
		return false;
	place = place_of_native(c, b);
	return place & PLACE_COMPUTED || (b->after_forward && !(place & PLACE_MOVED));
}

/* Born in backward and kept when it was over: what else stays is a gradient, save for what a later
 * backward pass gives up: that belonged to a graph which backward made, or was added to after
 * another forward pass. */
bool life_gradient(struct classifier *c, const struct block *b)
{
	return !c->m->tags && b->stage == STAGE_BACKWARD && !(b->signs & STACK_ASKED) &&
	       block_lived_past_backward(c, b) &&
	       !(b->died_seq && stage_is_backward(b->died_stage) &&
		 b->died_forward == b->born_forward);
}

/* Made in backward, by the script after it or by a Function ahead of it, and freed where gradients
 * are cleared; or of a stack whose blocks are. */
bool life_cleared(struct classifier *c, const struct block *b)
{
	if (b->saved || (b->stage == STAGE_BACKWARD && !block_lived_past_backward(c, b)))
		return false;
	return model_was_cleared(c->m, b) ||
	       (!b->died_seq && model_has_habit(c->m, b->stack, HABIT_CLEARED));
}

/* It took the place of what a module made: a buffer if that was one. */
bool life_replaced_weight(struct classifier *c, const struct block *b)
{
	return b->heir_signs & STACK_PARAM && !(b->tags & BLOCK_GRAD) &&
	       !(place_of_python(c, b->heir_stack) & PLACE_BUFFER);
}

/* The same in a forward pass: moving averages, queues. What a graph saves of them stays one. */
bool life_replaced_buffer(struct classifier *c, const struct block *b)
{
	return b->heir_signs & STACK_PARAM && !(b->tags & ~BLOCK_PLAIN) && block_lived_on(c, b) &&
	       place_of_python(c, b->heir_stack) & PLACE_BUFFER;
}

/* It was there when a backward pass had begun. */
static bool lived_into_backward(const struct classifier *c, const struct block *b)
{
	return (b->died_seq ? b->died_backward : c->m->backwards) > b->born_backward;
}

/* Born in forward, given up by backward. Of tensors around others, as those of tensor parallelism
 * are, autograd says that they are saved, but not where. */
bool life_activation(struct classifier *c, const struct block *b)
{
	if (!b->died_seq || !stage_is_backward(b->died_stage))
		return false;
	if (c->m->tags && (b->stage != STAGE_FORWARD || b->save_ns || !lived_into_backward(c, b)))
		return false;
	if (b->stage == STAGE_OUTSIDE && b->signs & STACK_PARAM)
		return false;
	return b->stage == STAGE_FORWARD || b->stage == STAGE_OUTSIDE ||
	       b->stage == STAGE_RECOMPUTE || b->died_backward > b->born_backward;
}

/* Backward went through its pass, and freed it or left it as it is: these frames' blocks are
 * never freed in backward. */
static bool is_gone_through(struct classifier *c, const struct block *b)
{
	const struct model_pass *p = model_pass_of(c->m, b->born_forward);

	if (!p || p->walked)
		return p;
	return model_takes_graph_on(p) && model_died_with_pass(p, b) &&
	       !model_stem_is_walked(c->m, b->stem);
}

/* A variable holds it past the backward pass: others of its kind show that the graph held it too.
 */
bool life_result(struct classifier *c, const struct block *b)
{
	if (c->m->tags || b->stage != STAGE_FORWARD || b->walked || !is_gone_through(c, b) ||
	    !lived_into_backward(c, b))
		return false;
	return model_has_habit(c->m, b->stack, HABIT_WALKED) ||
	       place_of_native(c, b) & PLACE_RESULT ||
	       place_of_stack(c, b->next_stack, b->seq) & PLACE_TAKES;
}

static bool outlived_its_pass(const struct block *b)
{
	return !b->died_seq || b->died_stage != STAGE_FORWARD || b->died_forward > b->born_forward;
}

/* What autograd saves was not recorded. */
static bool says_nothing(const struct model *m)
{
	return !m->tags && strcmp(defs_meta(m->defs, "torch.tags").s, "on");
}

/* A result that is kept with its graph, through which no backward pass goes: a recording may end
 * before any. */
bool life_graph(struct classifier *c, const struct block *b)
{
	const struct model_pass *p = model_pass_of(c->m, b->born_forward);

	if (!says_nothing(c->m) || b->stage != STAGE_FORWARD || !p || !outlived_its_pass(b))
		return false;
	if (!c->m->backwards)
		return model_keeps_much(p);
	return model_keeps_graph(p) && model_stem_is_walked(c->m, b->stem);
}

bool life_script_graph(struct classifier *c, const struct block *b)
{
	const struct model_pass *p = model_pass_of(c->m, b->born_forward);

	if (c->m->tags || b->stage != STAGE_OUTSIDE || b->walked || !p ||
	    !lived_into_backward(c, b))
		return false;
	return (model_is_of_graph(c->m, b) || (b->after_forward && model_takes_graph_on(p))) &&
	       place_of_native(c, b) & PLACE_COMPUTED;
}

/* No result of its pass, and what the next pass kept was appended to something: the first keys and
 * values lie in what computed them. */
static bool is_appended_to(struct classifier *c, const struct block *b)
{
	const struct model_pass *p = model_pass_of(c->m, b->born_forward);
	const struct model_pass *next = model_pass_of(c->m, b->born_forward + 1);

	for (int i = 0; p && next && p->last != b->seq && i < MODEL_MADE && next->kept[i]; i++)
		if (place_of_stack(c, next->kept[i], b->seq) & PLACE_CAT)
			return true;
	return false;
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
	if (!model_was_kept(b) &&
	    (b->died_stage == STAGE_FORWARD || !model_has_habit(c->m, b->stack, HABIT_KEPT)))
		return false;
	return place_of_native(c, b) & PLACE_CAT || is_appended_to(c, b);
}

/* Beams that win take over the keys and values of those that they grew from. */
bool life_rows(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	return b->stage == STAGE_OUTSIDE && !b->tags && b->after_forward &&
	       until == b->born_backward &&
	       (block_lived_on(c, b) || model_has_habit(c->m, b->stack, HABIT_CARRIED)) &&
	       model_makes_many(c->m, b->stack) && place_of_native(c, b) & PLACE_ROWS;
}

/* It took the place of what an optimizer kept: state that grows with its parameter. */
bool life_replaced_state(struct classifier *c, const struct block *b)
{
	return b->heir_signs & STACK_STATE && block_lived_on(c, b);
}

/* The script brought something to the device since the latest forward pass, before it made this. */
static bool is_after_move(struct classifier *c, const struct block *b)
{
	const struct model_pass *p = model_pass_of(c->m, b->born_forward);

	for (int i = 0; p && i < MODEL_MADE && p->made[i] && p->made[i] != b->stack; i++)
		if (place_of_stack(c, p->made[i], b->seq) & PLACE_MOVED)
			return true;
	return false;
}

/* Without backward passes nothing parts the results of one pass from the batch of the next, but
 * that a tensor came to the device between them. */
static bool is_of_another_pass(struct classifier *c, const struct block *b)
{
	return b->after_forward && (c->m->backwards || !is_after_move(c, b));
}

/* y.half(): a result that is put away; a batch comes to the device before. */
bool block_is_narrowed(struct classifier *c, const struct block *b)
{
	return b->after_forward && place_of_native(c, b) & PLACE_NARROWED && !is_after_move(c, b);
}

/* A result that the script keeps, with those of the passes before. */
bool block_is_gathered(struct classifier *c, const struct block *b)
{
	return b->stage == STAGE_OUTSIDE && (b->born_forward || b->born_backward) &&
	       model_gathers(c->m, b->stack) &&
	       place_of_native(c, b) & (PLACE_COMPUTED | PLACE_CONVERTED);
}

/* Computed by the script before a forward pass, from nothing that a module gave, and alive in it:
 * the batch in another form. */
bool life_prepared(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_forward : c->m->forwards;

	if (b->stage != STAGE_OUTSIDE || is_of_another_pass(c, b) || b->tags & BLOCK_GRAPH ||
	    model_is_of_graph(c->m, b) || !(b->signs & STACK_PYTHON) || block_is_gathered(c, b) ||
	    b->signs & (STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE | STACK_BUCKET))
		return false;
	return until > b->born_forward && !(b->died_seq && stage_is_backward(b->died_stage)) &&
	       !(place_of_native(c, b) & PLACE_CAST);
}

/* There before anything was computed, never freed, by no module. */
bool life_parameter(struct classifier *c, const struct block *b)
{
	return !c->m->tags && b->stage == STAGE_OUTSIDE && !b->died_seq && !b->born_backward &&
	       !b->after_forward && c->m->backwards > 1;
}

/* Made by data parallelism, or by an optimizer around another that calls it so. */
bool block_is_bucket(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_BUCKET || (b->signs & STACK_STATE && b->stage == STAGE_OUTSIDE &&
					   place_of_script(c, b) & PLACE_BUCKET);
}

/* Those that arrive die at once; without tags: no backward pass leaves as much behind as the
 * buckets are made for, once or twice. */
static bool holds_gradients(const struct model *m)
{
	return m->tags ? m->grads_gone > m->grads_kept : 4 * m->left.most < m->buckets;
}

/* Buckets hold the gradients themselves from the first that arrives until they are cleared. */
bool life_bucket(struct classifier *c, const struct block *b)
{
	return block_is_bucket(c, b) && b->grads_live && !b->tags && holds_gradients(c->m);
}

bool life_reduced(struct classifier *c, const struct block *b)
{
	return b->signs & STACK_REDUCED && (b->piled || block_lived_past_backward(c, b));
}
