/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on sets: what one line of the script makes outside of modules, a block for each parameter.
 * How long it keeps them, and what the line says, tells copies from gradients and from steps on the
 * way.
 */
#include "rules.h"
#include "thresholds.h"

static bool is_made_by_script(const struct block *b)
{
	return b->stage == STAGE_OUTSIDE &&
	       !(b->signs & (STACK_PARAM | STACK_BUCKET | STACK_COLLECTIVE | STACK_DATA |
			     STACK_CLIP | STACK_LOAD | STACK_STATE | STACK_CAPTURE));
}

static bool is_of_the_script(const struct block *b)
{
	return is_made_by_script(b) && !(b->tags & ~BLOCK_GRAD);
}

/* It came from the host by a line that brings more of them later, and did not stay. A line that is
 * called for each of several models makes many at once, or what stays. */
static bool is_batch(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	return place_of_native(c, b) & PLACE_MOVED && until <= b->born_backward + BATCH_PASSES &&
	       model_line_goes_on(c->m, b) && !model_makes_many_once(c->m, b->stack);
}

/* Kept over at least one whole step, or for good. */
bool set_copies(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_backward : c->m->backwards;

	return c->m->backwards && is_of_the_script(b) && model_is_of_a_set(c->m, b->stack) &&
	       (until > b->born_backward + !b->after_step ||
		(!b->died_seq &&
		 (!b->born_backward || model_has_habit(c->m, b->stack, HABIT_KEPT_ON)))) &&
	       !(place_of_native(c, b) & (PLACE_WORKSPACE | PLACE_CAST)) && !is_batch(c, b);
}

/* Made by copying what was there, not filled anew. */
static bool is_copied(struct classifier *c, const struct block *b)
{
	uint32_t place = place_of_native(c, b);

	if (place & (PLACE_TAKES | PLACE_RESULT))
		return false;
	return place & (PLACE_MOVED | PLACE_CONVERTED | PLACE_COMPUTED | PLACE_ROWS);
}

/* Copies as they are. Those in a wider type are what an optimizer works on. */
bool set_averages(struct classifier *c, const struct block *b)
{
	uint32_t place = place_of_native(c, b);

	return set_copies(c, b) && model_size_is_of_weight(c->m, b->size) &&
	       (is_copied(c, b) || (place & PLACE_EMPTY && !b->born_backward)) &&
	       (!(place & PLACE_CONVERTED) || place & PLACE_NARROWED);
}

/* No batch: there before the first pass, and used by pass after pass. */
bool set_loaded(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_forward : c->m->forwards;

	return is_made_by_script(b) && until > 1 && model_is_of_many(c->m, b) &&
	       !(c->m->backwards && model_is_of_a_set(c->m, b->stack)) && is_copied(c, b);
}

/* Without a backward pass empty room that is there for pass after pass, one for each layer, is for
 * keys and values. */
bool set_caches(struct classifier *c, const struct block *b)
{
	uint32_t until = b->died_seq ? b->died_forward : c->m->forwards;

	return !c->m->backwards && !b->tags && is_made_by_script(b) && until > 1 &&
	       model_is_of_many_alike(c->m, b) &&
	       place_of_native(c, b) & (PLACE_ZEROS | PLACE_EMPTY);
}

/* By a line that speaks of gradients, between a backward pass and what follows it: one for each, or
 * all in one. A line whose source is not there may speak of them unless it brings a batch. */
bool set_copied_gradients(struct classifier *c, const struct block *b)
{
	uint32_t place;

	if (!is_of_the_script(b) || !b->born_backward || b->after_step)
		return false;
	place = place_of_script(c, b);
	if (place & PLACE_OF_GRAD && !b->after_forward && b->size >= c->m->largest_gradient)
		return true;
	return model_is_of_a_set(c->m, b->stack) &&
	       (place & PLACE_OF_GRAD ||
		!(place & PLACE_READ || place_of_native(c, b) & PLACE_MOVED));
}

/* The arithmetic of an update that the script does by itself. */
bool set_update(struct classifier *c, const struct block *b)
{
	return is_of_the_script(b) && b->born_backward && !b->after_forward &&
	       !(b->died_seq && stage_is_backward(b->died_stage)) &&
	       model_is_of_a_set(c->m, b->stack) && !(place_of_native(c, b) & PLACE_MOVED);
}
