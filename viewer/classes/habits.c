/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Habits of a stack: how its earlier blocks ended is evidence about the others. Only past events
 * count, nothing is predicted.
 */
#include "classify.h"
#include "study.h"

static void note_habit(struct study *st, uint32_t stack, enum habit habit)
{
	if (stack)
		*map_put(&st->habits, stack, NULL) |= habit;
}

bool study_has_habit(const struct study *st, uint32_t stack, enum habit habit)
{
	const uint32_t *at = stack ? map_get(&st->habits, stack) : NULL;

	return at && *at & habit;
}

/* A Function can compute gradients ahead, in forward, as losses of large vocabularies do. */
static bool is_ahead(const struct study *st, const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->signs & STACK_FUNCTION &&
	       b->died_backward > b->born_backward && study_size_is_of_weight(st, b->block.size);
}

bool study_was_cleared(const struct study *st, const struct history *b)
{
	return b->block.died_seq && b->died_stage == STAGE_ZERO_GRAD &&
	       (b->stage == STAGE_BACKWARD || (b->stage == STAGE_OUTSIDE && b->born_backward) ||
		is_ahead(st, b));
}

bool life_went_on(const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->block.died_seq && b->died_stage == STAGE_FORWARD &&
	       b->died_forward > b->born_forward && !b->facts.save_ns;
}

bool life_was_kept(const struct history *b)
{
	return b->stage == STAGE_FORWARD && b->block.died_seq && !b->facts.save_ns &&
	       b->died_forward == b->born_forward + 1 && b->died_backward == b->born_backward;
}

void study_habits_died(struct study *st, const struct history *b)
{
	if (study_was_cleared(st, b))
		note_habit(st, b->block.stack, HABIT_CLEARED);
	if (life_went_on(b) || life_was_kept(b))
		note_habit(st, b->block.stack, HABIT_KEPT);
	if (b->stage == STAGE_OUTSIDE && b->died_backward > b->born_backward + !b->after_step)
		note_habit(st, b->block.stack, HABIT_KEPT_ON);
	if (b->stage == STAGE_OUTSIDE &&
	    (b->died_forward > b->born_forward || b->died_backward > b->born_backward))
		note_habit(st, b->block.stack, HABIT_READ);
	if (b->stage == STAGE_FORWARD && b->died_stage == STAGE_BACKWARD &&
	    b->died_backward > b->born_backward)
		note_habit(st, b->block.stack, HABIT_OF_GRAPH);
	if (b->stage == STAGE_OPTIMIZER && b->step && !spans_step_end(&st->m->spans, b->step).seq)
		note_habit(st, b->block.stack, HABIT_OF_STEP);
}

bool classify_clears_gradients(const struct model *m)
{
	const struct study *st = m->watcher;

	return ANY_OF(x, st->habits.slots, st->habits.room, x->used && x->value & HABIT_CLEARED);
}
