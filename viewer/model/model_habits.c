/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of one block says of others that the same stack makes. Only what has happened
 * counts, nothing is guessed ahead.
 */
#include "../base/need.h"
#include "model_parts.h"

static void note_habit(struct model *m, uint32_t stack, enum habit habit)
{
	bool fresh;
	uint32_t *at;

	if (!stack)
		return;
	at = map_put(&m->habits, stack, &fresh);
	*at = (fresh ? 0 : *at) | habit;
}

bool model_has_habit(const struct model *m, uint32_t stack, enum habit habit)
{
	const uint32_t *at = stack ? map_get(&m->habits, stack) : NULL;

	return at && *at & habit;
}

/* A Function may compute gradients ahead, in its forward pass, as losses of large vocabularies do.
 */
static bool is_ahead(const struct model *m, const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->signs & STACK_FUNCTION &&
	       b->died_backward > b->born_backward && model_size_is_of_weight(m, b->block.size);
}

bool model_was_cleared(const struct model *m, const struct history *b)
{
	return b->block.died_seq && b->died_stage == STAGE_ZERO_GRAD &&
	       (b->stage == STAGE_BACKWARD || (b->stage == STAGE_OUTSIDE && b->born_backward) ||
		is_ahead(m, b));
}

bool model_went_on(const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->block.died_seq && b->died_stage == STAGE_FORWARD &&
	       b->died_forward > b->born_forward && !b->save_ns;
}

bool model_was_kept(const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->block.died_seq && !b->save_ns &&
	       b->died_forward == b->born_forward + 1 && b->died_backward == b->born_backward;
}

void model_note_habits(struct model *m, const struct history *b)
{
	if (model_was_cleared(m, b))
		note_habit(m, b->block.stack, HABIT_CLEARED);
	if (model_went_on(b))
		note_habit(m, b->block.stack, HABIT_WENT_ON);
	if (model_was_kept(b))
		note_habit(m, b->block.stack, HABIT_KEPT);
	if (b->stage == STAGE_OUTSIDE && b->died_backward > b->born_backward + !b->after_step)
		note_habit(m, b->block.stack, HABIT_KEPT_ON);
	if (b->stage == STAGE_OUTSIDE && b->after_forward && b->died_forward > b->born_forward &&
	    b->died_backward == b->born_backward)
		note_habit(m, b->block.stack, HABIT_CARRIED);
	if (b->stage == STAGE_FORWARD && b->died_stage == STAGE_BACKWARD &&
	    b->died_backward > b->born_backward)
		note_habit(m, b->block.stack, HABIT_WALKED);
	if (b->stage == STAGE_FORWARD && b->died_stage != STAGE_BACKWARD &&
	    b->died_backward == b->born_backward &&
	    (b->save_ns || b->died_forward > b->born_forward))
		note_habit(m, b->block.stack, HABIT_LET_GO);
}
