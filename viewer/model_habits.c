/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of one block says of others: of those that the same stack makes, and of the one that
 * takes its place. Only what has happened counts, nothing is guessed ahead.
 */
#include "need.h"
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

void model_note_habits(struct model *m, const struct block *b)
{
	if (b->stage == STAGE_BACKWARD && b->died_stage == STAGE_ZERO_GRAD)
		note_habit(m, b->stack, HABIT_CLEARED);
	if (model_went_on(b))
		note_habit(m, b->stack, HABIT_WENT_ON);
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

/* What a module made, or what took the place of that. */
static uint32_t module_signs(const struct block *b)
{
	if (b->heir_stack)
		return b->heir_signs;
	return b->stage == STAGE_BACKWARD || b->stage == STAGE_OPTIMIZER
		       ? 0
		       : b->signs & (STACK_PARAM | STACK_COPY);
}

/* A large block may keep a rest of up to 1 MiB that was not worth splitting off. */
static bool is_as_large(uint64_t a, uint64_t b)
{
	enum { REST = 1 << 20 };

	return a == b || (a > REST && b > REST && (a > b ? a - b : b - a) <= REST);
}

/*
 * `p.data = p.data * m + q.data * n`: the old block dies when the new one, as large, is there; the
 * thread has made nothing since.
 */
void model_note_heir(struct model *m, const struct block *b, const struct gmt_event *e)
{
	const struct model_thread *t = model_thread(m, e->thread);
	uint32_t signs = module_signs(b);
	struct model_device *d;
	struct block *heir;

	if (b->memory || !signs || !t->born_seq || t->born_seq <= b->seq ||
	    m->forwards == b->born_forward)
		return;
	d = model_device(m, t->born_device);
	heir = d && t->born_device == b->device ? tree_find(&d->live, t->born_addr) : NULL;
	if (!heir || heir->seq != t->born_seq || !is_as_large(heir->size, b->size) ||
	    heir->heir_stack || heir->signs & STACK_PARAM)
		return;
	heir->heir_stack = b->heir_stack ? b->heir_stack : b->stack;
	heir->heir_signs = signs;
}
