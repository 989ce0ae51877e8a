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
	return place & PLACE_COMPUTED || (h->after_forward && !(place & PLACE_MOVED));
}

/* The recording ends in the backward pass that made it: that it is alive shows nothing. */
static bool is_of_open_pass(const struct classifier *c, const struct history *h)
{
	return !life_ended(h) && c->m->spans.in_backward &&
	       h->born_backward == c->m->spans.backwards;
}

/* Born in backward and kept when it was over: what else stays is a gradient, save for what a later
 * backward pass gives up: that belonged to a graph which backward made, or was added to after
 * another forward pass. */
bool life_gradient(struct classifier *c, const struct history *h)
{
	return !c->m->tags && h->stage == STAGE_BACKWARD && !life_made_by(h, STACK_ASKED) &&
	       (is_of_open_pass(c, h) ? study_size_is_of_weight(c->study, h->block.size)
				      : life_lived_past_backward(h)) &&
	       !(life_ended_in_backward(h) && !life_saw_forward(c, h));
}

/* Made in backward, by the script after it or by a Function ahead of it, and freed where gradients
 * are cleared; or of a stack whose blocks are. */
bool life_cleared(struct classifier *c, const struct history *h)
{
	if (life_saved(h) || (h->stage == STAGE_BACKWARD && !life_lived_past_backward(h)))
		return false;
	return study_was_cleared(c->study, h) ||
	       (!life_ended(h) && study_has_habit(c->study, h->block.stack, HABIT_CLEARED));
}

/* The block replaced one that a module made, and is a buffer if that one was. */
bool life_replaced_weight(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_PARAM) && !life_tagged(h, BLOCK_GRAD) &&
	       !(place_of_python(c, h->concluded.predecessor_stack) & PLACE_BUFFER);
}

/* The same in a forward pass: moving averages, queues. What a graph saves of them stays one. */
bool life_replaced_buffer(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_PARAM) && !life_tagged(h, ~BLOCK_PLAIN) &&
	       life_lived_on(c, h) &&
	       place_of_python(c, h->concluded.predecessor_stack) & PLACE_BUFFER;
}

/* Born in forward, given up by backward. Of tensors around others, as those of tensor parallelism
 * are, autograd says that they are saved, but not where. */
bool life_activation(struct classifier *c, const struct history *h)
{
	if (!life_ended_in_backward(h))
		return false;
	if (c->m->tags &&
	    (h->stage != STAGE_FORWARD || life_ever_saved(h) || !life_saw_backward(c, h)))
		return false;
	return h->stage == STAGE_FORWARD || h->stage == STAGE_OUTSIDE ||
	       h->stage == STAGE_RECOMPUTE || life_saw_backward(c, h);
}

/* Backward went through its pass, and freed it or left it as it is: these frames' blocks are
 * never freed in backward. */
static bool is_gone_through(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (!p || p->backward)
		return p;
	return pass_takes_graph_on(p) && !study_path_is_of_graph(c->study, h->module_path);
}

/* A variable holds it past the backward pass: others of its kind show that the graph held it too.
 */
bool life_result(struct classifier *c, const struct history *h)
{
	if (c->m->tags || h->stage != STAGE_FORWARD || h->backward_over || !is_gone_through(c, h) ||
	    !life_saw_backward(c, h))
		return false;
	return study_has_habit(c->study, h->block.stack, HABIT_OF_GRAPH) ||
	       place_of_native(c, h) & PLACE_RESULT ||
	       place_of_stack(c, h->concluded.next_stack, h->block.seq) & PLACE_TAKES;
}

static bool outlived_its_pass(const struct classifier *c, const struct history *h)
{
	return !life_ended_in(h, STAGE_FORWARD) || life_saw_forward(c, h);
}

/* The recording does not say what autograd saved. */
static bool says_nothing(const struct model *m)
{
	return !m->tags && strcmp(defs_meta(m->defs, "torch.tags").s, "on");
}

/* A result that is kept with its graph, through which no backward pass goes: a recording may end
 * before any. */
bool life_graph(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (!says_nothing(c->m) || h->stage != STAGE_FORWARD || !p || !outlived_its_pass(c, h))
		return false;
	if (!c->m->spans.backwards)
		return pass_keeps_much(p);
	return pass_keeps_graph(p) && study_path_is_of_graph(c->study, h->module_path);
}

/* A result of the model in another type: logits that the script converts to float32, say. */
bool life_converts_result(struct classifier *c, const struct history *h)
{
	return !c->m->tags && h->stage == STAGE_OUTSIDE && h->after_forward &&
	       place_of_native(c, h) & PLACE_CONVERTED &&
	       pass_returned(study_pass_of(c->study, h->born_forward), h->block.size);
}

bool life_script_graph(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (c->m->tags || h->stage != STAGE_OUTSIDE || h->backward_over || !p ||
	    !life_saw_backward(c, h))
		return false;
	if (life_converts_result(c, h))
		return p->backward || pass_keeps_graph(p);
	return (study_is_of_graph(c->study, h) || (h->after_forward && pass_takes_graph_on(p))) &&
	       place_of_native(c, h) & PLACE_COMPUTED;
}

/* The next pass kept something that was appended to, and not small beside it: the first keys and
 * values lie in what computed them. */
static bool is_appended_to(struct classifier *c, const struct history *h)
{
	const struct forward_pass *next = study_pass_of(c->study, h->born_forward + 1);

	for (int i = 0; next && i < STUDY_MADE && next->kept[i]; i++)
		if (next->largest_kept[i] >= h->block.size / APPENDED_PARTS &&
		    place_of_stack(c, next->kept[i], h->block.seq) & PLACE_CAT)
			return true;
	return false;
}

/* No result of its pass; appended to others or later appended to, and given up in a later forward
 * pass or after the next one: by itself or, if it still lives, by those that its stack made before.
 */
bool life_cache(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (h->stage != STAGE_FORWARD || life_ever_saved(h) || life_saw_backward(c, h) || !p ||
	    p->last == h->block.seq)
		return false;
	if (!life_went_on(h) && !life_was_kept(h) &&
	    (life_ended_in(h, STAGE_FORWARD) ||
	     !study_has_habit(c->study, h->block.stack, HABIT_KEPT)))
		return false;
	return place_of_native(c, h) & PLACE_CAT || is_appended_to(c, h);
}

/* Beams that win take over the keys and values of those that they grew from. */
bool life_rows(struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_OUTSIDE && !life_tagged(h, ANY_TAG) && h->after_forward &&
	       !life_saw_backward(c, h) && study_makes_many(c->study, h->block.stack) &&
	       place_of_native(c, h) & PLACE_ROWS;
}

/* The block replaced an optimizer's state: state that grows with its parameter. */
bool life_replaced_state(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_STATE) && life_lived_on(c, h);
}

/* The script brought something to the device since the latest forward pass, before it made this. */
static bool is_after_move(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	for (int i = 0; p && i < STUDY_MADE && p->made[i] && p->made[i] != h->block.stack; i++)
		if (place_of_stack(c, p->made[i], h->block.seq) & PLACE_MOVED)
			return true;
	return false;
}

/* Without backward passes nothing parts the results of one pass from the batch of the next, but
 * that a tensor came to the device between them. */
static bool is_of_another_pass(struct classifier *c, const struct history *h)
{
	return h->after_forward && (c->m->spans.backwards || !is_after_move(c, h));
}

/* A result that the script keeps, with those of the passes before. */
bool block_is_gathered(struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_OUTSIDE && (h->born_forward || h->born_backward) &&
	       study_gathers(c->study, h->block.stack) && !block_is_for_passes(c, h) &&
	       place_of_native(c, h) & (PLACE_COMPUTED | PLACE_CONVERTED);
}

/* Computed by the script before a forward pass, from nothing that a module gave, and alive in it:
 * the batch in another form. */
bool life_prepared(struct classifier *c, const struct history *h)
{
	if (h->stage != STAGE_OUTSIDE || (is_of_another_pass(c, h) && !block_is_for_passes(c, h)) ||
	    life_tagged(h, BLOCK_GRAPH) || study_is_of_graph(c->study, h) ||
	    !life_made_by(h, STACK_PYTHON) || block_is_gathered(c, h) ||
	    block_holds_results(c, h) ||
	    life_made_by(h, STACK_PARAM | STACK_CLIP | STACK_STATE | STACK_CAPTURE | STACK_BUCKET))
		return false;
	return (life_saw_forward(c, h) || block_is_for_passes(c, h)) &&
	       !life_ended_in_backward(h) && !(place_of_native(c, h) & PLACE_CAST);
}

/* There before anything was computed, never freed, by no module. */
bool life_parameter(struct classifier *c, const struct history *h)
{
	return !c->m->tags && !study_is_old(c->study, h) && h->stage == STAGE_OUTSIDE &&
	       !life_ended(h) && !h->born_backward && !h->after_forward &&
	       c->m->spans.backwards > 1;
}

/* Made by data parallelism, or by an optimizer around another that calls it so. */
bool block_is_bucket(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_BUCKET) ||
	       (life_made_by(h, STACK_STATE) && h->stage == STAGE_OUTSIDE &&
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
	return block_is_bucket(c, h) && h->holds_gradients &&
	       !life_tagged(h, ANY_TAG & ~BLOCK_GRAD) && holds_gradients(c->study);
}

bool life_reduced(UNUSED struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_REDUCED) &&
	       (h->concluded.reduced_beside || life_lived_past_backward(h));
}
