/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of one block says of others: of those that the same stack makes, and of the one that
 * takes its place. Only what has happened counts, nothing is guessed ahead.
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

bool model_went_on(const struct block *b)
{
	return b->stage == STAGE_FORWARD && b->died_seq && b->died_stage == STAGE_FORWARD &&
	       b->died_forward > b->born_forward && !b->save_ns;
}

bool model_was_kept(const struct block *b)
{
	return b->stage == STAGE_FORWARD && b->died_seq && !b->save_ns &&
	       b->died_forward == b->born_forward + 1 && b->died_backward == b->born_backward;
}

void model_note_habits(struct model *m, const struct block *b)
{
	if (b->stage == STAGE_BACKWARD && b->died_stage == STAGE_ZERO_GRAD)
		note_habit(m, b->stack, HABIT_CLEARED);
	if (model_went_on(b))
		note_habit(m, b->stack, HABIT_WENT_ON);
	if (model_was_kept(b))
		note_habit(m, b->stack, HABIT_KEPT);
}

void model_note_birth(struct model *m, const struct block *b)
{
	struct model_thread *t = model_thread(m, b->thread);

	if (b->memory)
		return;
	t->born_addr = b->addr;
	t->born_seq = b->seq;
	t->born_device = b->device;
}

/* What a module or an optimizer made, or what took the place of that. */
static uint32_t maker_signs(const struct block *b)
{
	if (b->heir_stack)
		return b->heir_signs;
	if (b->stage == STAGE_OPTIMIZER)
		return STACK_STATE;
	return b->stage == STAGE_BACKWARD ? 0 : b->signs & (STACK_PARAM | STACK_COPY | STACK_STATE);
}

/* A large block may keep a rest of up to 1 MiB that was not worth splitting off. */
static bool is_as_large(uint64_t a, uint64_t b)
{
	enum { REST = 1 << 20 };

	return a == b || (a > REST && b > REST && (a > b ? a - b : b - a) <= REST);
}

/* Outside of everything a successor may be larger or smaller: weights that grow or are pruned. */
static bool may_follow(const struct block *b, const struct block *heir, uint64_t seq)
{
	enum { NEAR = 8 };

	if (is_as_large(heir->size, b->size))
		return true;
	return heir->stage == STAGE_OUTSIDE && seq - heir->seq <= NEAR &&
	       heir->size / 2 <= b->size && b->size / 2 <= heir->size;
}

/*
 * `p.data = p.data * m + q.data * n`: the old block dies when the new one, as large, is there; the
 * thread has made nothing since.
 */
void model_note_heir(struct model *m, const struct block *b, const struct gmt_event *e)
{
	const struct model_thread *t = model_thread(m, e->thread);
	uint32_t signs = maker_signs(b);
	struct model_device *d;
	struct block *heir;

	if (b->memory || !signs || !t->born_seq || t->born_seq <= b->seq ||
	    (m->forwards == b->born_forward && m->backwards == b->born_backward))
		return;
	d = model_device(m, t->born_device);
	heir = d && t->born_device == b->device ? tree_find(&d->live, t->born_addr) : NULL;
	if (!heir || heir->seq != t->born_seq || !may_follow(b, heir, e->seq) || heir->heir_stack ||
	    heir->signs & STACK_PARAM)
		return;
	heir->heir_stack = b->heir_stack ? b->heir_stack : b->stack;
	heir->heir_signs = signs;
}
