/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on sets: what one line of the script makes outside of modules, a block for each parameter.
 * How long it keeps them, and what the line says, tells copies from gradients and from steps on the
 * way.
 */
#include "rules.h"
#include "thresholds.h"

static bool is_made_by_script(const struct history *h)
{
	return h->stage == STAGE_OUTSIDE &&
	       !life_made_by(h, STACK_PARAM | STACK_COPY | STACK_BUCKET | STACK_COLLECTIVE |
					STACK_DATA | STACK_CLIP | STACK_LOAD | STACK_STATE |
					STACK_CAPTURE);
}

static bool is_of_the_script(const struct history *h)
{
	return is_made_by_script(h) && !life_tagged(h, ~BLOCK_GRAD);
}

/* It came from the host and did not stay, and not with as many as a network has. */
static bool is_batch(struct classifier *c, const struct history *h)
{
	uint32_t until = life_last_backward(c, h);

	return place_of_native(c, h) & PLACE_MOVED && until <= h->born_backward + BATCH_PASSES &&
	       !study_is_of_network(c->study, h->block.stack);
}

static bool is_of_copies(struct classifier *c, const struct history *h)
{
	return study_is_of_a_set(c->study, h->block.stack) &&
	       study_size_is_of_copy(c->study, h->block.size);
}

/* Kept over at least one whole step, or for good. */
bool set_copies(struct classifier *c, const struct history *h)
{
	uint32_t until = life_last_backward(c, h);

	return c->m->spans.backwards && is_of_the_script(h) && is_of_copies(c, h) &&
	       (until > h->born_backward + !h->after_step ||
		(!life_ended(h) && (!h->born_backward ||
				    study_has_habit(c->study, h->block.stack, HABIT_KEPT_ON)))) &&
	       !(place_of_native(c, h) & (PLACE_WORKSPACE | PLACE_CAST)) && !is_batch(c, h);
}

/* Made by copying what was there, not filled anew. */
static bool is_copied(struct classifier *c, const struct history *h)
{
	uint32_t place = place_of_native(c, h);

	if (place & (PLACE_TAKES | PLACE_RESULT))
		return false;
	return place &
	       (PLACE_MOVED | PLACE_CONVERTED | PLACE_COMPUTED | PLACE_ROWS | PLACE_STORAGE);
}

/* Copies as they are. Those in a wider type are what an optimizer works on. */
bool set_averages(struct classifier *c, const struct history *h)
{
	uint32_t place;

	if (!set_copies(c, h) || !study_size_is_of_weight(c->study, h->block.size))
		return false;
	place = place_of_native(c, h);
	return is_copied(c, h) && (!(place & PLACE_CONVERTED) || place & PLACE_NARROWED);
}

/* What is only copied on from a file is soon gone. A batch from a file is there for its pass, a
 * model for at least one. */
bool set_read(struct classifier *c, const struct history *h)
{
	uint32_t passes = life_last_forward(c, h) - h->born_forward;

	if (!life_made_by(h, STACK_LOAD) || h->stage != STAGE_OUTSIDE || life_ever_saved(h))
		return false;
	return !life_ended(h) || passes > 1 ||
	       (passes && study_is_of_a_set(c->study, h->block.stack));
}

bool set_loaded_state(UNUSED struct classifier *c, const struct history *h)
{
	return h->concluded.loaded_state;
}

/* Let go before the first pass, as weights that are converted are. */
static bool is_gone_before_passes(const struct classifier *c, const struct history *h)
{
	return c->m->spans.forwards && life_ended(h) && !h->died_forward;
}

/* No batch: there before the first pass, and used by pass after pass, or converted before it. */
bool set_loaded(struct classifier *c, const struct history *h)
{
	bool gone = is_gone_before_passes(c, h);
	bool first = !life_ended(h) && c->m->spans.forwards <= 1 && study_is_of_layers(c->study, h);

	/* What is computed may be for anything, if no model was seen. */
	first &= c->m->spans.forwards || !(place_of_native(c, h) & PLACE_COMPUTED);
	if (h->concluded.used & USED_OF_WEIGHT && !c->m->spans.forwards)
		return is_made_by_script(h) && study_is_of_network(c->study, h->block.stack);
	return is_made_by_script(h) && (gone || first || life_last_forward(c, h) > 1) &&
	       study_is_of_many(c->study, h) && is_copied(c, h) &&
	       (gone || !c->m->spans.backwards || !is_of_copies(c, h));
}

/* Room for what passes write into, and later ones read. What is made with its values is none. */
bool set_cache(struct classifier *c, const struct history *h)
{
	return !c->m->spans.trains && is_of_the_script(h) &&
	       life_last_forward(c, h) > h->born_forward + 1 &&
	       study_is_for_each_layer(c->study, h->block.stack) &&
	       !(place_of_script(c, h) & PLACE_ADAPTER) &&
	       (place_of_native(c, h) & (PLACE_ROOM | PLACE_MOVED)) == PLACE_ROOM;
}

/* By a line that speaks of gradients, between a backward pass and what follows it: one for each, or
 * all in one. If the source of a line is not known, it may use them unless it brings a batch.
 * Absolute values, squares and products are no gradients any more. */
bool set_copied_gradients(struct classifier *c, const struct history *h)
{
	uint32_t place;

	if (!is_of_the_script(h) || !h->born_backward || h->after_step)
		return false;
	if (place_of_native(c, h) & (PLACE_TAKES | PLACE_RESULT))
		return false;
	place = place_of_script(c, h);
	if (place & PLACE_OF_GRAD && !h->after_forward &&
	    h->block.size >= c->study->largest_gradient)
		return true;
	return study_is_of_a_set(c->study, h->block.stack) &&
	       (place & PLACE_OF_GRAD ||
		!(place & PLACE_READ || place_of_native(c, h) & PLACE_MOVED));
}

/* The arithmetic of an update that the script does by itself: no copies, where uses are known. */
bool set_update(struct classifier *c, const struct history *h)
{
	if (uses_known(c->m) && !(h->concluded.used & USED_BY_KERNEL))
		return false;
	return is_of_the_script(h) && h->born_backward && !h->after_forward &&
	       !life_ended_in_backward(h) && study_is_of_a_set(c->study, h->block.stack) &&
	       !(place_of_native(c, h) & PLACE_MOVED);
}
