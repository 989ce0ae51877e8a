/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on how long a block lived and where it ended. With autograd's tags they only fill gaps.
 * Without tags they decide most classes, with less certainty.
 */
#include "rules.h"
#include "thresholds.h"

/* Only the graph held it: an intermediate result between batch and model, noise, converted labels.
 * A batch that is brought to the device there is still a batch. */
bool block_is_of_graph_alone(struct classifier *c, const struct history *h)
{
	uint32_t place;

	if (!life_ended_in_backward(h))
		return false;
	place = place_of_native(c, h);
	return place & PLACE_COMPUTED || (h->after_forward && !(place & PLACE_MOVED));
}

/* The recording ends in the backward pass that made it, so that being alive shows nothing. */
static bool is_of_open_pass(const struct classifier *c, const struct history *h)
{
	return !life_ended(h) && c->m->spans.in_backward &&
	       h->born_backward == c->m->spans.backwards;
}

/* Born in backward and alive after it. If a later backward pass frees the block, it is a gradient
 * only if another forward pass came before, after which it was added to. Else it belonged to a
 * graph that backward made. */
bool life_gradient(struct classifier *c, const struct history *h)
{
	return !c->m->tags && h->stage == STAGE_BACKWARD && !life_made_by(h, STACK_ASKED) &&
	       (is_of_open_pass(c, h) ? study_size_is_of_weight(c->study, h->block.size)
				      : life_lived_past_backward(h)) &&
	       !(life_ended_in_backward(h) && !life_saw_forward(c, h));
}

/* Made in backward, by the script after it or by a Function ahead of it, and freed where gradients
 * are cleared. Or still alive, and earlier blocks of its stack were freed there. */
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

/* The same for a buffer: moving averages, queues. It stays a buffer if a graph saves it. */
bool life_replaced_buffer(struct classifier *c, const struct history *h)
{
	return life_replaced(h, STACK_PARAM) && !life_tagged(h, ~BLOCK_PLAIN) &&
	       life_lived_on(c, h) &&
	       place_of_python(c, h->concluded.predecessor_stack) & PLACE_BUFFER;
}

/* Born in forward and freed by backward. With tags this is for tensors that wrap others, as in
 * tensor parallelism: autograd reports that they are saved, but not their address. */
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

/* Backward went through its pass: it freed some of the pass's blocks, or it left most, and never
 * frees a block that these frames made. */
static bool is_gone_through(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (!p || p->backward)
		return p;
	return pass_takes_graph_on(p) && !study_path_is_of_graph(c->study, h->module_path);
}

/* A variable keeps it after the backward pass. Other blocks of its stack, or the operation, show
 * that a graph held it too. */
bool life_result(struct classifier *c, const struct history *h)
{
	if (c->m->tags || h->stage != STAGE_FORWARD || h->backward_over || !is_gone_through(c, h) ||
	    !life_saw_backward(c, h))
		return false;
	return study_has_habit(c->study, h->block.stack, HABIT_OF_GRAPH) ||
	       place_of_native(c, h) & PLACE_RESULT ||
	       place_of_stack(c, h->concluded.next_stack, h->block.seq) & PLACE_TAKES;
}

/* The recording does not have what autograd saved. */
static bool says_nothing(const struct model *m)
{
	return !m->tags && strcmp(defs_meta(m->defs, "torch.tags").s, "on");
}

/* A result kept by a graph without a backward pass, perhaps since the recording ends before it is
 * over. */
bool life_graph(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	if (!says_nothing(c->m) || h->stage != STAGE_FORWARD || !p ||
	    (life_ended_in(h, STAGE_FORWARD) && !life_saw_forward(c, h)))
		return false;
	if (!c->m->spans.backwards || (c->m->spans.backwards == 1 && c->m->spans.in_backward))
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

/* The next pass kept a block that was made by appending and is not much smaller. The first keys and
 * values lie in the block in which they were computed. */
static bool is_appended_to(struct classifier *c, const struct history *h)
{
	const struct forward_pass *next = study_pass_of(c->study, h->born_forward + 1);

	for (int i = 0; next && i < STUDY_MADE && next->kept[i]; i++)
		if (next->largest_kept[i] >= h->block.size / APPENDED_PARTS &&
		    place_of_stack(c, next->kept[i], h->block.seq) & PLACE_CAT)
			return true;
	return false;
}

/* Not its pass's result, and made by appending or later appended to. It was freed in a later
 * forward pass or after the next one or, if it is still alive, earlier blocks of its stack were. */
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

/* Beam search: beams that win take copies of the keys and values of the beams that they extend. */
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

/* The script brought a tensor to the device between the latest forward pass and this block. */
static bool is_after_move(struct classifier *c, const struct history *h)
{
	const struct forward_pass *p = study_pass_of(c->study, h->born_forward);

	for (int i = 0; p && i < STUDY_MADE && p->made[i] && p->made[i] != h->block.stack; i++)
		if (place_of_stack(c, p->made[i], h->block.seq) & PLACE_MOVED)
			return true;
	return false;
}

/* It belongs to the pass before it. Without backward passes the only sign that a block is part of
 * the next pass's batch is a tensor that came to the device before it. */
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

/* Computed by the script before a forward pass, not from a module's output, and still alive during
 * that pass: the batch in another form. */
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

/* Allocated before anything was computed, by no module, and never freed. */
bool life_parameter(struct classifier *c, const struct history *h)
{
	return !c->m->tags && !study_is_old(c->study, h) && h->stage == STAGE_OUTSIDE &&
	       !life_ended(h) && !h->born_backward && !h->after_forward &&
	       c->m->spans.backwards > 1;
}

/* Made by data parallelism, or by an optimizer's method in a statement that names it a bucket. */
bool block_is_bucket(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_BUCKET) ||
	       (life_made_by(h, STACK_STATE) && h->stage == STAGE_OUTSIDE &&
		place_of_script(c, h) & PLACE_BUCKET);
}

/* True if buckets hold the gradients, because backward frees most gradients outside of them.
 * Without tags: no backward pass leaves a quarter of the buckets' bytes (buckets are made once or
 * twice). */
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
