/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that replace a block of a module or an optimizer, one for one or one for many. Only past
 * events count, nothing is predicted.
 */
#include "study.h"

/* What made the block, or the first of the blocks that it replaced. Of its signs those of `of`. */
static struct study_maker maker_of(const struct history *b, uint32_t of)
{
	uint32_t signs = b->signs & (STACK_PARAM | STACK_COPY | STACK_STATE);

	if (b->concluded.predecessor_stack)
		return (struct study_maker){ b->concluded.predecessor_stack,
					     b->concluded.predecessor_signs & of };
	if (b->stage == STAGE_OPTIMIZER || b->stage == STAGE_BACKWARD)
		signs = b->stage == STAGE_OPTIMIZER ? STACK_STATE : 0;
	return (struct study_maker){ b->block.stack, signs & of };
}

/* True if next is as large as b. Made outside of passes and steps, it can be up to twice as large
 * or half as large, because weights grow or are pruned. */
static bool may_follow(const struct history *b, const struct history *next, uint64_t seq)
{
	enum { NEAR = 8 };

	if (study_as_large(next->block.size, b->block.size))
		return true;
	return next->stage == STAGE_OUTSIDE && seq - next->block.seq <= NEAR &&
	       next->block.size / 2 <= b->block.size + b->block.size / 16 &&
	       b->block.size / 2 <= next->block.size + next->block.size / 16;
}

/* The thread's latest block, or the one `back` births before it; NULL if it is not alive. */
static struct history *made_before(struct study *st, const struct study_thread *t, unsigned back)
{
	const struct study_birth *at;

	if (back >= STUDY_BIRTHS || back >= t->birth)
		return NULL;
	at = &t->births[(t->birth - 1 - back) % STUDY_BIRTHS];
	return study_alive(st, at);
}

/* True if a block is as large as many together, apart from their rounding and its unsplit rest. */
static bool is_about(uint64_t all, uint64_t sum)
{
	return (sum >= all && sum - all <= all / 16) || study_as_large(all, sum);
}

/* It has replaced nothing yet, and is no weight of its own. */
static bool may_inherit(const struct history *next)
{
	return !next->concluded.predecessor_stack && !(next->signs & STACK_PARAM);
}

static void inherit(struct history *next, struct study_maker maker)
{
	next->concluded.predecessor_stack = maker.stack;
	next->concluded.predecessor_signs = maker.signs;
}

void study_leaf(void *ctx, uint32_t leaf, const struct history *b)
{
	struct study *st = ctx;

	while (leaf >= st->maker_count)
		*need_item(st->makers, st->maker_count, st->maker_room) = (struct study_maker){ 0 };
	st->makers[leaf] = b ? maker_of(b, STACK_PARAM) : (struct study_maker){ 0 };
	if (b)
		study_sets_leaf(st, b);
}

/* `p.data = kept`: the block replaces a weight, whatever made it, and however long ago. */
void study_leaf_moved(void *ctx, uint32_t leaf, struct history *b)
{
	const struct study *st = ctx;
	const struct study_maker *maker = leaf < st->maker_count ? &st->makers[leaf] : NULL;

	if (maker && maker->signs && may_inherit(b))
		inherit(b, *maker);
}

/*
 * `for p in params: p.data = flat[at:at + p.numel()]`: weights are freed one after another, and a
 * block that was made just before is as large as all of them, apart from their rounding.
 */
static void note_flat(struct study *st, struct study_thread *t, const struct history *b,
		      const struct gmt_event *e)
{
	enum { LATEST = 4 };

	if (b->stage == STAGE_FORWARD || !maker_of(b, STACK_PARAM).signs)
		return;
	t->lost_bytes += b->block.size;
	t->lost++;
	if (t->let_go.stack != e->stack)
		t->let_go = (struct study_let_go){ .stack = e->stack };
	t->let_go.maker = maker_of(b, STACK_PARAM);
	t->let_go.bytes += b->block.size;
	t->let_go.blocks++;
	for (unsigned back = 0; t->lost > 1 && back < LATEST; back++) {
		struct history *next = made_before(st, t, back);

		if (next && next->stage == STAGE_OUTSIDE && may_inherit(next) &&
		    is_about(next->block.size, t->lost_bytes))
			inherit(next, maker_of(b, STACK_PARAM));
	}
}

/* The same by way of the host: one stack freed them, and the next block is as large as all. */
static void note_flat_return(const struct study_let_go *l, struct history *b)
{
	if (l->blocks > 1 && b->stage == STAGE_OUTSIDE && may_inherit(b) &&
	    is_about(b->block.size, l->bytes))
		inherit(b, l->maker);
}

/* Remembers a block of an optimizer's method, which might be swapped in later. */
static void note_made(struct study *st, const struct history *b)
{
	if (b->signs & STACK_STATE && b->stage == STAGE_OUTSIDE)
		st->made[st->made_count++ % STUDY_SWAPS] =
			(struct study_swap){ study_birth(b), b->block.size };
}

/* `p.data = self.state[p]["old"]`: a weight is freed in an optimizer's method. The latest live
 * block of its size that such methods made replaces it. */
static struct history *swapped_in(struct study *st, const struct history *b)
{
	uint32_t n = st->made_count < STUDY_SWAPS ? st->made_count : STUDY_SWAPS;

	for (uint32_t back = 1; back <= n; back++) {
		const struct study_swap *s = &st->made[(st->made_count - back) % STUDY_SWAPS];
		struct history *next = NULL;

		if (s->at.device == b->block.device && study_as_large(s->size, b->block.size))
			next = study_alive(st, &s->at);
		if (next && next->block.seq > b->block.seq && !next->concluded.predecessor_stack)
			return next;
	}
	return NULL;
}

static void note_swap(struct study *st, const struct history *b)
{
	struct history *next;

	if (!(b->died_signs & (STACK_STATE | STACK_STEP)) || !maker_of(b, STACK_PARAM).signs)
		return;
	next = swapped_in(st, b);
	if (next)
		inherit(next, maker_of(b, STACK_PARAM));
}

/*
 * A weight that no pass has used is converted: `p.data = p.data.half()`, or to fewer bits with
 * scales. All blocks made since the weight before was freed replace this one.
 */
static void note_converted(struct study *st, struct study_thread *t, const struct history *b,
			   const struct gmt_event *e)
{
	enum { NEAR = 64 };

	for (unsigned back = 0; b->stage == STAGE_OUTSIDE && back < STUDY_BIRTHS; back++) {
		struct history *next = made_before(st, t, back);

		if (!next)
			continue;
		if (next->block.seq <= b->block.seq || next->block.seq <= t->replaced ||
		    e->seq - next->block.seq > NEAR)
			break;
		if (next->stage == STAGE_OUTSIDE && next->block.device == b->block.device &&
		    next->block.stack != b->block.stack && may_inherit(next) &&
		    !(next->signs & (STACK_STATE | STACK_DATA)) &&
		    next->block.size / 2 <= b->block.size + b->block.size / 16)
			inherit(next, maker_of(b, STACK_PARAM));
	}
	t->replaced = e->seq;
}

/* No line of Python frees it: the interpreter is exiting, and nothing replaces weights. */
static bool is_at_exit(const struct history *b, const struct gmt_event *e)
{
	return e->stack && !(b->died_signs & STACK_PYTHON);
}

/*
 * `p.data = p.data * m + q.data * n`: the old block is freed when a new one, as large, exists and
 * is the latest of its thread.
 */
void study_predecessors_died(struct study *st, const struct history *b, const struct gmt_event *e)
{
	struct study_thread *t = map_item(&st->threads, e->thread);
	struct study_maker maker = maker_of(b, UINT32_MAX);
	struct history *next;

	if (b->block.memory || !maker.signs || is_at_exit(b, e))
		return;
	note_flat(st, t, b, e);
	if (st->m->spans.forwards == b->born_forward &&
	    st->m->spans.backwards == b->born_backward) {
		if (maker.signs & STACK_PARAM)
			note_converted(st, t, b, e);
		return;
	}
	next = made_before(st, t, 0);
	if (next && next->block.seq > b->block.seq && next->block.device == b->block.device &&
	    may_follow(b, next, e->seq) && may_inherit(next))
		inherit(next, maker);
	else
		note_swap(st, b);
}

/* A line that reduces gradients makes a block for each parameter or layer, and these accumulate. A
 * block that only passes gradients on is freed before the next one is made. */
static void note_reduced(struct study *st, struct history *b)
{
	struct study_birth *at;
	struct history *before;

	if (!(b->signs & STACK_REDUCED))
		return;
	at = map_item(&st->reduced, b->block.stack);
	before = study_alive(st, at);
	if (before)
		before->concluded.reduced_beside = b->concluded.reduced_beside = true;
	*at = study_birth(b);
}

void study_predecessors_born(struct study *st, struct history *b)
{
	struct study_thread *t = map_item(&st->threads, b->block.thread);
	struct history *before;

	if (b->block.memory)
		return;
	note_made(st, b);
	note_reduced(st, b);
	note_flat_return(&t->let_go, b);
	before = made_before(st, t, 0);
	if (before && before->stage == STAGE_FORWARD)
		before->concluded.next_stack = st->m->tags ? 0 : b->block.stack;
	t->births[t->birth++ % STUDY_BIRTHS] = study_birth(b);
	t->lost_bytes = t->lost = 0;
	t->let_go.blocks = t->let_go.bytes = 0;
}
