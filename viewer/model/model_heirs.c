/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that take the place of what a module or an optimizer made: one for one, or one for many.
 * Only what has happened counts, nothing is guessed ahead.
 */
#include "../base/need.h"
#include "model_parts.h"

/* What a module or an optimizer made, or what took the place of that. */
static uint32_t maker_signs(const struct history *b)
{
	if (b->predecessor_stack)
		return b->predecessor_signs;
	if (b->stage == STAGE_OPTIMIZER)
		return STACK_STATE;
	return b->stage == STAGE_BACKWARD ? 0 : b->signs & (STACK_PARAM | STACK_COPY | STACK_STATE);
}

/* Outside of everything a successor may be larger or smaller: weights that grow or are pruned. */
static bool may_follow(const struct history *b, const struct history *heir, uint64_t seq)
{
	enum { NEAR = 8 };

	if (model_as_large(heir->block.size, b->block.size))
		return true;
	return heir->stage == STAGE_OUTSIDE && seq - heir->block.seq <= NEAR &&
	       heir->block.size / 2 <= b->block.size + b->block.size / 16 &&
	       b->block.size / 2 <= heir->block.size + heir->block.size / 16;
}

/* The thread's latest block but `back`, if it lives; NULL = none. */
static struct history *made_before(struct model *m, const struct model_thread *t, unsigned back)
{
	const struct model_birth *at;
	struct model_device *d;
	struct history *b;

	if (back >= MODEL_BIRTHS || back >= t->birth)
		return NULL;
	at = &t->births[(t->birth - 1 - back) % MODEL_BIRTHS];
	d = model_device(m, at->device);
	b = d ? live_find(&d->live, at->addr) : NULL;
	return b && b->block.seq == at->seq ? b : NULL;
}

/* Many blocks keep a rest each, and the one what the allocator does not split off. */
static bool is_about(uint64_t all, uint64_t sum)
{
	return (sum >= all && sum - all <= all / 16) || model_as_large(all, sum);
}

static void inherit(struct history *heir, const struct history *b, uint32_t signs)
{
	heir->predecessor_stack = b->predecessor_stack ? b->predecessor_stack : b->block.stack;
	heir->predecessor_signs = signs;
}

void model_note_maker(struct model_leaf *leaf, const struct history *b)
{
	leaf->signs = maker_signs(b) & STACK_PARAM;
	leaf->stack = b->predecessor_stack ? b->predecessor_stack : b->block.stack;
}

/* `p.data = kept`, whoever made that, and however long ago. */
void model_note_moved(const struct model_leaf *leaf, struct history *b)
{
	if (!leaf->signs || b->predecessor_stack || b->signs & STACK_PARAM)
		return;
	b->predecessor_stack = leaf->stack;
	b->predecessor_signs = leaf->signs;
}

/*
 * `for p in params: p.data = flat[at:at + p.numel()]`: weights die one behind the other, and a
 * block that was made just before is as large as all of them, but for what each is rounded up by.
 */
static void note_flat_heir(struct model *m, struct model_thread *t, const struct history *b,
			   const struct gmt_event *e)
{
	enum { LATEST = 4 };

	if (b->stage == STAGE_FORWARD || !(maker_signs(b) & STACK_PARAM))
		return;
	t->lost_bytes += b->block.size;
	t->lost++;
	if (t->let_go.stack != e->stack)
		t->let_go = (struct model_let_go){ .stack = e->stack };
	t->let_go.maker = b->predecessor_stack ? b->predecessor_stack : b->block.stack;
	t->let_go.bytes += b->block.size;
	t->let_go.blocks++;
	for (unsigned back = 0; t->lost > 1 && back < LATEST; back++) {
		struct history *heir = made_before(m, t, back);

		if (heir && heir->stage == STAGE_OUTSIDE && !heir->predecessor_stack &&
		    !(heir->signs & STACK_PARAM) && is_about(heir->block.size, t->lost_bytes))
			inherit(heir, b, STACK_PARAM);
	}
}

/* By way of the host: one line has let them go, and the next block is as large as all. */
static void note_flat_return(const struct model_let_go *l, struct history *b)
{
	if (l->blocks < 2 || b->stage != STAGE_OUTSIDE || b->signs & STACK_PARAM ||
	    !is_about(b->block.size, l->bytes))
		return;
	b->predecessor_stack = l->maker;
	b->predecessor_signs = STACK_PARAM;
}

/* What an optimizer makes by its methods, for what it swaps in later. */
static void note_made(struct model *m, const struct history *b)
{
	if (b->signs & STACK_STATE && b->stage == STAGE_OUTSIDE)
		m->made[m->made_count++ % MODEL_SWAPS] =
			(struct model_swap){ { b->block.addr, b->block.seq, b->block.device },
					     b->block.size };
}

/* `p.data = self.state[p]["old"]`: a weight that dies in an optimizer's method. The latest block
 * of its size that these methods made has its place. */
static struct history *swapped_in(struct model *m, const struct history *b)
{
	uint32_t n = m->made_count < MODEL_SWAPS ? m->made_count : MODEL_SWAPS;
	struct model_device *d = model_device(m, b->block.device);

	for (uint32_t back = 1; d && back <= n; back++) {
		const struct model_swap *s = &m->made[(m->made_count - back) % MODEL_SWAPS];
		struct history *heir = NULL;

		if (model_as_large(s->size, b->block.size))
			heir = live_find(&d->live, s->at.addr);
		if (heir && heir->block.seq == s->at.seq && heir->block.seq > b->block.seq &&
		    !heir->predecessor_stack)
			return heir;
	}
	return NULL;
}

static void note_swap(struct model *m, const struct history *b)
{
	struct history *heir;

	if (!(b->died_signs & (STACK_STATE | STACK_STEP)) || !(maker_signs(b) & STACK_PARAM))
		return;
	heir = swapped_in(m, b);
	if (heir)
		inherit(heir, b, STACK_PARAM);
}

/*
 * A weight that no pass has used gives way to itself in another form: `p.data = p.data.half()`, or
 * in fewer bits with its scales. What was made since the weight before it did so is of this one.
 */
static void note_converted(struct model *m, struct model_thread *t, const struct history *b,
			   const struct gmt_event *e)
{
	enum { NEAR = 64 };

	for (unsigned back = 0; b->stage == STAGE_OUTSIDE && back < MODEL_BIRTHS; back++) {
		struct history *heir = made_before(m, t, back);

		if (!heir)
			continue;
		if (heir->block.seq <= b->block.seq || heir->block.seq <= t->replaced ||
		    e->seq - heir->block.seq > NEAR)
			break;
		if (heir->stage == STAGE_OUTSIDE && heir->block.device == b->block.device &&
		    heir->block.stack != b->block.stack && !heir->predecessor_stack &&
		    !(heir->signs & (STACK_PARAM | STACK_STATE | STACK_DATA)) &&
		    heir->block.size / 2 <= b->block.size + b->block.size / 16)
			inherit(heir, b, STACK_PARAM);
	}
	t->replaced = e->seq;
}

/*
 * `p.data = p.data * m + q.data * n`: the old block dies when the new one, as large, is there; the
 * thread has made nothing since.
 */
void model_note_heir(struct model *m, const struct history *b, const struct gmt_event *e)
{
	struct model_thread *t = model_thread(m, e->thread);
	uint32_t signs = maker_signs(b);
	struct history *heir;

	if (b->block.memory || !signs)
		return;
	note_flat_heir(m, t, b, e);
	if (m->spans.forwards == b->born_forward && m->spans.backwards == b->born_backward) {
		if (signs & STACK_PARAM)
			note_converted(m, t, b, e);
		return;
	}
	heir = made_before(m, t, 0);
	if (heir && heir->block.seq > b->block.seq && heir->block.device == b->block.device &&
	    may_follow(b, heir, e->seq) && !heir->predecessor_stack && !(heir->signs & STACK_PARAM))
		inherit(heir, b, signs);
	else
		note_swap(m, b);
}

static struct model_birth *reduced_by(struct model *m, uint32_t stack)
{
	bool fresh;
	uint32_t *at = map_put(&m->reduced_ids, stack, &fresh);

	if (fresh) {
		m->reduced = need_grow(m->reduced, &m->reduced_room, m->reduced_count,
				       sizeof(*m->reduced));
		*at = m->reduced_count++;
		m->reduced[*at] = (struct model_birth){ 0 };
	}
	return &m->reduced[*at];
}

/* Where gradients are reduced one line makes a block for each parameter or layer, and they pile up;
 * what it only passes on through is gone when the next one comes. */
static void note_reduced(struct model *m, struct history *b)
{
	struct model_birth *at;
	struct model_device *d;
	struct history *before;

	if (!(b->signs & STACK_REDUCED))
		return;
	at = reduced_by(m, b->block.stack);
	d = model_device(m, at->device);
	before = d ? live_find(&d->live, at->addr) : NULL;
	if (before && before->block.seq == at->seq)
		before->reduced_beside = b->reduced_beside = true;
	*at = (struct model_birth){ b->block.addr, b->block.seq, b->block.device };
}

void model_note_birth(struct model *m, struct history *b)
{
	struct model_thread *t = model_thread(m, b->block.thread);
	struct history *before;

	if (b->block.memory)
		return;
	note_made(m, b);
	note_reduced(m, b);
	note_flat_return(&t->let_go, b);
	before = made_before(m, t, 0);
	if (before && before->stage == STAGE_FORWARD)
		before->next_stack = m->tags ? 0 : b->block.stack;
	t->births[t->birth++ % MODEL_BIRTHS] =
		(struct model_birth){ b->block.addr, b->block.seq, b->block.device };
	t->lost_bytes = t->lost = 0;
	t->let_go.blocks = t->let_go.bytes = 0;
}
