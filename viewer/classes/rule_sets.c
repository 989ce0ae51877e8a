/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on sets: blocks that one line of the script makes outside of modules, one for each
 * parameter. How long they live and what the line says distinguishes copies, gradients and
 * intermediate results.
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

/* It came from the host and was freed soon, and its line makes fewer blocks than a network has. */
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

/* Copies that are kept over at least one whole step, or for good. */
bool set_copies(struct classifier *c, const struct history *h)
{
	uint32_t until = life_last_backward(c, h);

	return c->m->spans.backwards && is_of_the_script(h) && is_of_copies(c, h) &&
	       (until > h->born_backward + !h->after_step ||
		(!life_ended(h) && (!h->born_backward ||
				    study_has_habit(c->study, h->block.stack, HABIT_KEPT_ON)))) &&
	       !(place_of_native(c, h) & (PLACE_WORKSPACE | PLACE_CAST)) && !is_batch(c, h);
}

/* Copied or converted from existing data, not filled anew. */
static bool is_copied(struct classifier *c, const struct history *h)
{
	uint32_t place = place_of_native(c, h);

	if (place & (PLACE_TAKES | PLACE_RESULT))
		return false;
	return place &
	       (PLACE_MOVED | PLACE_CONVERTED | PLACE_COMPUTED | PLACE_ROWS | PLACE_STORAGE);
}

/* Copies in the same or a narrower type. An optimizer works on copies in a wider type. Copies of
 * its state are state. */
bool set_averages(struct classifier *c, const struct history *h)
{
	const uint32_t *of = map_get(&c->study->made_of, h->block.stack);
	uint32_t place;

	if (of && model_signs(c->m, *of) & (STACK_STEP | STACK_STATE))
		return false;
	if (!set_copies(c, h) || !study_size_is_of_weight(c->study, h->block.size))
		return false;
	place = place_of_native(c, h);
	return is_copied(c, h) && (!(place & PLACE_CONVERTED) || place & PLACE_NARROWED);
}

/* Read from a file and kept. A block that is only copied on is freed soon, unless it is as large as
 * the weights, a batch from a file after its pass, a model never or after at least one pass. */
bool set_read(struct classifier *c, const struct history *h)
{
	uint32_t passes = life_last_forward(c, h) - h->born_forward;

	if (!life_made_by(h, STACK_LOAD) || h->stage != STAGE_OUTSIDE || life_ever_saved(h))
		return false;
	return !life_ended(h) || passes > 1 || study_is_of_a_set(c->study, h->block.stack);
}

bool set_loaded_state(UNUSED struct classifier *c, const struct history *h)
{
	return h->concluded.loaded_state;
}

/* Freed before the first pass, like weights that are converted. */
static bool is_gone_before_passes(const struct classifier *c, const struct history *h)
{
	return c->m->spans.forwards && life_ended(h) && !h->died_forward;
}

/* Weights, not a batch: made before the first pass, and kept for several passes or converted before
 * the first. */
bool set_loaded(struct classifier *c, const struct history *h)
{
	bool gone = is_gone_before_passes(c, h);
	bool first = !life_ended(h) && c->m->spans.forwards <= 1 && study_is_of_layers(c->study, h);

	/* a computed block can be for anything if no pass was seen */
	if (!c->m->spans.forwards && (place_of_native(c, h) & PLACE_COMPUTED))
		first = false;
	if (h->concluded.used & USED_OF_WEIGHT && !c->m->spans.forwards)
		return is_made_by_script(h) && study_is_of_network(c->study, h->block.stack);
	return is_made_by_script(h) && (gone || first || life_last_forward(c, h) > 1) &&
	       study_is_of_many(c->study, h) && is_copied(c, h) &&
	       (gone || !c->m->spans.backwards || !is_of_copies(c, h));
}

/* Memory made empty or of zeros, which passes write and later ones read. A block that is made with
 * its values is no cache. */
bool set_cache(struct classifier *c, const struct history *h)
{
	return !c->m->spans.trains && is_of_the_script(h) &&
	       life_last_forward(c, h) > h->born_forward + 1 &&
	       study_is_for_each_layer(c->study, h->block.stack) &&
	       !(place_of_script(c, h) & PLACE_ADAPTER) &&
	       (place_of_native(c, h) & (PLACE_ROOM | PLACE_MOVED)) == PLACE_ROOM;
}

/* Made between a backward pass and the update by a line that names gradients: a block for each, or
 * one for all. A line without recorded source counts too, unless it brings a batch to the device.
 * Absolute values, squares and products are no gradients. */
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

/* Intermediate results of an update by the script itself; no copies, if uses are known. */
bool set_update(struct classifier *c, const struct history *h)
{
	if (uses_known(c->m) && !(h->concluded.used & USED_BY_KERNEL))
		return false;
	return is_of_the_script(h) && h->born_backward && !h->after_forward &&
	       !life_ended_in_backward(h) && study_is_of_a_set(c->study, h->block.stack) &&
	       !(place_of_native(c, h) & PLACE_MOVED);
}
