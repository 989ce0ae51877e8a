/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on how long a block lived and where it ended. Where autograd's tags are there they only
 * fill gaps; without tags they carry the answer, with less confidence.
 */
#include "rules.h"
#include "thresholds.h"

/* The graph alone held it: a step on the way from the batch to the model, noise, labels in another
 * form. A batch that is brought to the device on the way is one all the same. */
bool block_is_of_graph_alone(struct classifier *c, const struct history *h)
{
	uint32_t place;

	if (!life_ended_in_backward(h))
		return false;
	place = place_of_native(c, h);
	return place & PLACE_COMPUTED || (life_born_after_forward(h) && !(place & PLACE_MOVED));
}

/* Born in backward and kept when it was over: what else stays is a gradient, save for what a later
 * backward pass gives up: that belonged to a graph which backward made, or was added to after
 * another forward pass. */
bool life_gradient(struct classifier *c, const struct history *h)
{
	return !c->m->tags && life_born_in(h, STAGE_BACKWARD) && !life_made_by(h, STACK_ASKED) &&
	       life_lived_past_backward(h) &&
	       !(life_ended_in_backward(h) && !life_saw_forward(c, h));
}

/* Made in backward, by the script after it or by a Function ahead of it, and freed where gradients
 * are cleared; or of a stack whose blocks are. */
bool life_cleared(struct classifier *c, const struct history *h)
{
	if (life_saved(h) || (life_born_in(h, STAGE_BACKWARD) && !life_lived_past_backward(h)))
		return false;
	return study_was_cleared(c->study, h) ||
	       (!life_ended(h) && study_has_habit(c->study, life_stack(h), HABIT_CLEARED));
}

/* It took the place of what a module made: a buffer if that was one. */
bool life_replaced_weight(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_PARAM) && !life_tagged(h, BLOCK_GRAD) &&
	       !(place_of_python(c, life_predecessor_stack(h)) & PLACE_BUFFER);
}

/* The same in a forward pass: moving averages, queues. What a graph saves of them stays one. */
bool life_replaced_buffer(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_PARAM) && !life_tagged(h, ~BLOCK_PLAIN) &&
	       life_lived_on(c, h) && place_of_python(c, life_predecessor_stack(h)) & PLACE_BUFFER;
}

/* Born in forward, given up by backward. Of tensors around others, as those of tensor parallelism
 * are, autograd says that they are saved, but not where. */
bool life_activation(struct classifier *c, const struct history *h)
{
	if (!life_ended_in_backward(h))
		return false;
	if (c->m->tags &&
	    (!life_born_in(h, STAGE_FORWARD) || life_ever_saved(h) || !life_saw_backward(c, h)))
		return false;
	return life_born_in(h, STAGE_FORWARD) || life_born_in(h, STAGE_OUTSIDE) ||
	       life_born_in(h, STAGE_RECOMPUTE) || life_saw_backward(c, h);
}

/* Backward went through its pass, and freed it or left it as it is: these frames' blocks are
 * never freed in backward. */
static bool is_gone_through(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, life_first_forward(h));

	if (!p || p->backward)
		return p;
	return pass_takes_graph_on(p) && !study_path_is_of_graph(c->study, life_module_path(h));
}

/* A variable holds it past the backward pass: others of its kind show that the graph held it too.
 */
bool life_result(struct classifier *c, const struct history *h)
{
	if (c->m->tags || !life_born_in(h, STAGE_FORWARD) || life_backward_over(h) ||
	    !is_gone_through(c, h) || !life_saw_backward(c, h))
		return false;
	return study_has_habit(c->study, life_stack(h), HABIT_OF_GRAPH) ||
	       place_of_native(c, h) & PLACE_RESULT ||
	       place_of_stack(c, life_next_stack(h), life_seq(h)) & PLACE_TAKES;
}

static bool outlived_its_pass(const struct classifier *c, const struct history *h)
{
	return !life_ended_in(h, STAGE_FORWARD) || life_saw_forward(c, h);
}

/* What autograd saves was not recorded. */
static bool says_nothing(const struct model *m)
{
	return !m->tags && strcmp(defs_meta(m->defs, "torch.tags").s, "on");
}

/* A result that is kept with its graph, through which no backward pass goes: a recording may end
 * before any. */
bool life_graph(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, life_first_forward(h));

	if (!says_nothing(c->m) || !life_born_in(h, STAGE_FORWARD) || !p ||
	    !outlived_its_pass(c, h))
		return false;
	if (!c->m->spans.backwards)
		return pass_keeps_much(p);
	return pass_keeps_graph(p) && study_path_is_of_graph(c->study, life_module_path(h));
}

bool life_script_graph(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, life_first_forward(h));

	if (c->m->tags || !life_born_in(h, STAGE_OUTSIDE) || life_backward_over(h) || !p ||
	    !life_saw_backward(c, h))
		return false;
	return (study_is_of_graph(c->study, h) ||
		(life_born_after_forward(h) && pass_takes_graph_on(p))) &&
	       place_of_native(c, h) & PLACE_COMPUTED;
}

/* The next pass kept something that was appended to, and not small beside it: the first keys and
 * values lie in what computed them. */
static bool is_appended_to(struct classifier *c, const struct history *h)
{
	const struct forward_pass *next = study_pass_of(c->study, life_first_forward(h) + 1);

	for (int i = 0; next && i < STUDY_MADE && next->kept[i]; i++)
		if (next->largest_kept[i] >= life_size(h) / APPENDED_PARTS &&
		    place_of_stack(c, next->kept[i], life_seq(h)) & PLACE_CAT)
			return true;
	return false;
}

/* No result of its pass; appended to others or later appended to, and given up in a later forward
 * pass or after the next one: by itself or, if it still lives, by those that its stack made before.
 */
bool life_cache(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, life_first_forward(h));

	if (!life_born_in(h, STAGE_FORWARD) || life_ever_saved(h) || life_saw_backward(c, h) ||
	    !p || p->last == life_seq(h))
		return false;
	if (!life_went_on(h) && !life_was_kept(h) &&
	    (life_ended_in(h, STAGE_FORWARD) ||
	     !study_has_habit(c->study, life_stack(h), HABIT_KEPT)))
		return false;
	return place_of_native(c, h) & PLACE_CAT || is_appended_to(c, h);
}

/* Beams that win take over the keys and values of those that they grew from. */
bool life_rows(struct classifier *c, const struct history *h)
{
	return life_born_in(h, STAGE_OUTSIDE) && !life_tagged(h, ANY_TAG) &&
	       life_born_after_forward(h) && !life_saw_backward(c, h) &&
	       study_makes_many(c->study, life_stack(h)) && place_of_native(c, h) & PLACE_ROWS;
}

/* It took the place of what an optimizer kept: state that grows with its parameter. */
bool life_replaced_state(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_STATE) && life_lived_on(c, h);
}

/* The script brought something to the device since the latest forward pass, before it made this. */
static bool is_after_move(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, life_first_forward(h));

	for (int i = 0; p && i < STUDY_MADE && p->made[i] && p->made[i] != life_stack(h); i++)
		if (place_of_stack(c, p->made[i], life_seq(h)) & PLACE_MOVED)
			return true;
	return false;
}

/* Without backward passes nothing parts the results of one pass from the batch of the next, but
 * that a tensor came to the device between them. */
static bool is_of_another_pass(struct classifier *c, const struct history *h)
{
	return life_born_after_forward(h) && (c->m->spans.backwards || !is_after_move(c, h));
}

/* A result that the script keeps, with those of the passes before. */
bool block_is_gathered(struct classifier *c, const struct history *h)
{
	return life_born_in(h, STAGE_OUTSIDE) &&
	       (life_first_forward(h) || life_first_backward(h)) &&
	       study_gathers(c->study, life_stack(h)) &&
	       place_of_native(c, h) & (PLACE_COMPUTED | PLACE_CONVERTED);
}

/* Computed by the script before a forward pass, from nothing that a module gave, and alive in it:
 * the batch in another form. */
bool life_prepared(struct classifier *c, const struct history *h)
{
	if (!life_born_in(h, STAGE_OUTSIDE) || is_of_another_pass(c, h) ||
	    life_tagged(h, BLOCK_GRAPH) || study_is_of_graph(c->study, h) ||
	    !life_made_by(h, STACK_PYTHON) || block_is_gathered(c, h) ||
	    life_made_by(h, STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE | STACK_BUCKET))
		return false;
	return life_saw_forward(c, h) && !life_ended_in_backward(h) &&
	       !(place_of_native(c, h) & PLACE_CAST);
}

/* There before anything was computed, never freed, by no module. */
bool life_parameter(struct classifier *c, const struct history *h)
{
	return !c->m->tags && !study_is_old(c->study, h) && life_born_in(h, STAGE_OUTSIDE) &&
	       !life_ended(h) && !life_first_backward(h) && !life_born_after_forward(h) &&
	       c->m->spans.backwards > 1;
}

/* Made by data parallelism, or by an optimizer around another that calls it so. */
bool block_is_bucket(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_BUCKET) ||
	       (life_made_by(h, STACK_STATE) && life_born_in(h, STAGE_OUTSIDE) &&
		place_of_script(c, h) & PLACE_BUCKET);
}

/* Those that arrive die at once; without tags: no backward pass leaves as much behind as the
 * buckets are made for, once or twice. */
static bool holds_gradients(const struct study *st)
{
	return st->m->tags ? st->grads_gone > st->grads_kept : 4 * st->left.most < st->buckets;
}

/* Buckets hold the gradients themselves from the first that arrives until they are cleared. */
bool life_bucket(struct classifier *c, const struct history *h)
{
	return block_is_bucket(c, h) && life_holds_gradients(h) &&
	       !life_tagged(h, ANY_TAG & ~BLOCK_GRAD) && holds_gradients(c->study);
}

bool life_reduced(struct classifier *c, const struct history *h)
{
	(void)c;
	return life_made_by(h, STACK_REDUCED) &&
	       (life_reduced_beside(h) || life_lived_past_backward(h));
}
