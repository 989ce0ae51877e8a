/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes by use. Work outside of passes that touches a gradient is an update. So is later work on
 * the other blocks that it touched, except weights. Blocks that updates read again and again and
 * that no pass reads are an optimizer's state, whatever made them.
 */
#include "../base/sorted.h"
#include "rules.h"

#include "../../format/record.h"

static uint32_t stage_of_work(const struct study *st, uint32_t work)
{
	const struct use_kind *k = uses_kind(&st->m->uses, work);
	uint32_t signs = k->stack ? model_signs(st->m, k->stack) : 0;

	if (signs & STACK_STEP)
		return 0;
	if (k->node || signs & STACK_BACKWARD || spans_is_engine(&st->m->spans, k->thread))
		return USED_IN_BACKWARD;
	return signs & STACK_FORWARD ? USED_IN_FORWARD : 0;
}

static bool is_gradient(const struct study *st, const struct history *h)
{
	if (life_tagged(h, BLOCK_LEAF))
		return false;
	return life_tagged(h, BLOCK_GRAD) || h->holds_gradients ||
	       (h->stage == STAGE_BACKWARD && study_size_is_of_weight(st, h->block.size));
}

/* NULL: it is not alive any more. */
static struct history *touched_block(const struct study_work *w, uint32_t i)
{
	const struct study_touched *x = &w->touched[i];

	return x->h && x->h->block.life == x->life ? x->h : NULL;
}

static void meets_gradient(struct history *h)
{
	h->concluded.used |= USED_WITH_GRADIENT;
	if (!life_tagged(h, BLOCK_LEAF) && !life_made_by(h, STACK_PARAM))
		h->concluded.used |= USED_OF_GRADIENT;
	if (h->from && h->from->block.life == h->from_life)
		h->from->concluded.used |= USED_WITH_GRADIENT;
}

/* Before the first pass, blocks computed from weights are converted weights. */
static void note_converted(struct study *st)
{
	struct study_work *w = &st->work;
	bool of_weight = false;

	for (uint32_t i = 0; i < w->count; i++) {
		const struct history *h = touched_block(w, i);

		if (h && !w->touched[i].first &&
		    (life_made_by(h, STACK_PARAM) || h->concluded.used & USED_OF_WEIGHT))
			of_weight = true;
	}
	for (uint32_t i = 0; of_weight && i < w->count; i++) {
		struct history *h = touched_block(w, i);

		if (h && w->touched[i].first && !life_made_by(h, STACK_PARAM))
			h->concluded.used |= USED_OF_WEIGHT;
	}
}

/* Notes a block computed from one other, such as its product with a number: a use of the product is
 * a use of the other. */
static void derive(struct study_work *w)
{
	uint32_t result = w->touched[0].first ? 0 : 1;
	struct history *to, *from;

	if (w->count != 2 || w->touched[0].first == w->touched[1].first)
		return;
	to = touched_block(w, result);
	from = touched_block(w, !result);
	if (!to || !from)
		return;
	to->from = from;
	to->from_life = from->block.life;
}

static void note_for_pass(struct study *st, uint32_t stack)
{
	const uint32_t *of = &stack;

	for (; of && *of && !study_has_habit(st, *of, HABIT_FOR_PASS);
	     of = map_get(&st->made_of, *of))
		*map_put(&st->habits, *of, NULL) |= HABIT_FOR_PASS;
}

static void note_made_of(struct study *st, uint32_t stack, uint32_t of)
{
	if (study_has_habit(st, stack, HABIT_FOR_PASS))
		note_for_pass(st, of);
	else if (of)
		*map_put(&st->made_of, stack, NULL) = of;
}

/* A copy is two works: one reads its source, the next one writes its target. */
static bool reads_copied(const struct study *st, uint32_t work)
{
	return uses_kind(&st->m->uses, work)->transfer == GMT_TRANSFER_SOURCE;
}

/* Notes the block that the script makes or writes, and the largest one that it is made from. */
static void note_script(struct study *st)
{
	struct study_work *w = &st->work;
	struct history *to = NULL, *from = NULL;

	for (uint32_t i = 0; i < w->count; i++) {
		struct history *h = touched_block(w, i);

		if (h && w->touched[i].first)
			to = h;
		else if (h &&
			 (!from || h->block.size > from->block.size ||
			  (h->block.size == from->block.size && h->block.seq < from->block.seq)))
			from = h;
	}
	if (to && to->stage == STAGE_OUTSIDE)
		note_made_of(st, to->block.stack, from ? from->block.stack : w->source);
	else if (from && from->stage == STAGE_OUTSIDE && !to)
		from->concluded.written = uses_kind(&st->m->uses, w->work)->stack;
	to = to ? to : from;
	if (to && to->stage == STAGE_OUTSIDE && w->of_result)
		to->concluded.used |= USED_OF_RESULT;
}

static void note_update(struct study *st)
{
	if (!st->update_count || st->updated != st->m->spans.backwards)
		*need_item(st->updates, st->update_count, st->update_room) = 0;
	st->updated = st->m->spans.backwards;
	st->updates[st->update_count - 1] = uses_work(&st->m->uses, st->work.work)->seq;
}

/* Draws conclusions from a work when all blocks that it touches are known. */
void study_settle_work(struct study *st)
{
	struct study_work *w = &st->work;
	bool leaves = false;

	if (!w->used && !w->gradient)
		derive(w);
	if (!w->used && !st->m->spans.forwards)
		note_converted(st);
	if (!w->used && !w->gradient && !reads_copied(st, w->work))
		note_script(st);
	for (uint32_t i = 0; w->gradient && !w->used && i < w->count; i++) {
		struct history *h = touched_block(w, i);

		if (!h)
			continue;
		meets_gradient(h);
		leaves |= life_tagged(h, BLOCK_LEAF);
	}
	if (leaves)
		note_update(st);
	if (w->used & USED_IN_BACKWARD)
		w->backward = w->work;
	w->count = 0;
}

void study_used(void *ctx, struct history *h, uint32_t work, uint32_t before)
{
	struct study *st = ctx;
	struct study_work *w = &st->work;

	if (w->work != work) {
		study_settle_work(st);
		w->source = reads_copied(st, w->work) ? w->latest : 0;
		if (w->source == 0)
			w->of_result = false;
		w->work = work;
		w->used = stage_of_work(st, work);
		w->kernel = uses_kind(&st->m->uses, work)->transfer ? 0 : USED_BY_KERNEL;
		w->gradient = false;
	}
	h->concluded.used |= w->used | w->kernel;
	if (w->used & USED_IN_FORWARD)
		note_for_pass(st, h->block.stack);
	if (is_gradient(st, h) ||
	    (h->concluded.used & USED_OF_GRADIENT && !life_tagged(h, BLOCK_LEAF)))
		w->gradient = true;
	w->latest = h->block.stack;
	if (h->stage == STAGE_FORWARD || h->concluded.used & USED_OF_RESULT)
		w->of_result = true;
	if (!w->used && before && before < w->backward)
		h->concluded.used |= USED_AGAIN;
	if (w->count < STUDY_TOUCHED) {
		w->touched[w->count].h = h;
		w->touched[w->count].life = h->block.life;
		w->touched[w->count++].first = !before;
	}
}

/* No module computes state, and no graph leads to it. */
static bool can_be_state(const struct history *h)
{
	return h->stage != STAGE_FORWARD && !life_tagged(h, BLOCK_LEAF | BLOCK_GRAD | BLOCK_GRAPH);
}

static bool is_state(const struct history *h, uint32_t signs)
{
	return (h->concluded.used & (signs | USED_IN_FORWARD | USED_IN_BACKWARD)) == signs &&
	       can_be_state(h);
}

void study_uses_died(struct study *st, const struct history *h)
{
	study_settle_work(st);
	if (h->block.stack && is_state(h, USED_WITH_GRADIENT | USED_AGAIN))
		*map_put(&st->habits, h->block.stack, NULL) |= HABIT_OF_STATE;
}

/* Only with tags, because without them weights of the script's own look the same: both are read by
 * updates alone. If a stack makes state, so is its last block, which no update reads any more, and
 * a block that passes seem to read, because a launch can name an old address. Updates can name old
 * addresses in a library's scratch memory, which is no state. */
bool used_state(struct classifier *c, const struct history *h)
{
	if (!c->m->tags || !(h->concluded.used & USED_WITH_GRADIENT) ||
	    place_of_native(c, h) & PLACE_WORKSPACE)
		return false;
	if (is_state(h, USED_WITH_GRADIENT | USED_AGAIN))
		return true;
	return can_be_state(h) && (!life_ended(h) || life_saw_backward(c, h)) &&
	       study_has_habit(c->study, h->block.stack, HABIT_OF_STATE);
}

/* State that passes read too, such as Fisher information. */
bool used_read_state(struct classifier *c, const struct history *h)
{
	enum { STATE = USED_WITH_GRADIENT | USED_AGAIN };

	return c->m->tags && (h->concluded.used & STATE) == STATE && can_be_state(h) &&
	       !life_made_by(h, STACK_PARAM) && !(place_of_native(c, h) & PLACE_WORKSPACE);
}

/* Memory in which the script adds up or stores results. No pass uses it or a block made from it. */
bool block_holds_results(struct classifier *c, const struct history *h)
{
	return h->stage == STAGE_OUTSIDE && h->concluded.written && life_saw_forward(c, h) &&
	       !(h->concluded.used & (USED_IN_FORWARD | USED_IN_BACKWARD)) &&
	       !study_has_habit(c->study, h->block.stack, HABIT_FOR_PASS) &&
	       place_of_native(c, h) & PLACE_ROOM &&
	       (h->concluded.used & USED_OF_RESULT ||
		place_of_line(c, h->concluded.written) & PLACE_SUM);
}

/* The script keeps it with others of its stack that passes used, and made it from no result. */
bool block_is_for_passes(struct classifier *c, const struct history *h)
{
	return !(h->concluded.used & USED_OF_RESULT) && study_gathers(c->study, h->block.stack) &&
	       study_has_habit(c->study, h->block.stack, HABIT_FOR_PASS);
}

bool study_passed_over(const struct study *st, const struct history *h)
{
	size_t next = SORTED_FIRST(st->update_count, i, st->updates[i] <= h->block.seq);

	return next < st->update_count && life_lived_past(h, st->updates[next]) &&
	       !(h->concluded.used & USED_WITH_GRADIENT);
}
