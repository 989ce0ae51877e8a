/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list, tuple or dict of the program that has results of many forward passes: outputs that a hook
 * gathers, a history, predictions of an evaluation. What it has was recorded at the refusal; that
 * it is of many passes, which nothing but they themselves has used, its first tensor's line shows.
 */
#include "../base/arithmetic.h"
#include "oom.h"

enum { PASSES = 4 };

/* What one stack made in earlier passes and only they used. */
struct line {
	uint64_t bytes;
	size_t passes;
};

struct search {
	const struct oom *oom;
	MAP_OF(struct line) lines; /* by stack */
	struct map passes;	   /* of a stack */
	uint32_t now;
};

static bool waits(const struct search *s, const struct block *b, uint32_t own)
{
	const struct oom *o = s->oom;
	uint32_t last = o->around[b - o->shot.moment.blocks].before;

	return category_in(b->category, OF_ONE_PASS) && own < s->now && last &&
	       oom_pass_at(o, uses_work(&o->timeline->model.uses, last)->seq) <= own;
}

static void add_lines(struct search *s)
{
	const struct moment *mo = &s->oom->shot.moment;

	FOR_EACH (const struct block, b, mo->blocks, mo->count) {
		uint32_t own = b->life ? oom_own_pass(s->oom, b->life - 1) : s->now;
		struct line *line;
		bool fresh;

		if (!waits(s, b, own))
			continue;
		line = map_item(&s->lines, b->stack);
		line->bytes += b->size;
		map_put(&s->passes, (uint64_t)b->stack << 32 | own, &fresh);
		line->passes += fresh;
	}
}

/* Passes that a result of the stack waited for at most, before it was used. */
static uint32_t longest_wait(const struct oom *o, uint32_t stack)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = lives_born_by(l, o->refusal.event.seq), longest = 0;

	for (uint32_t i = n > OOM_LATEST ? n - OOM_LATEST : 0; i < n; i++) {
		struct block_uses x;
		uint32_t own;

		if (lives_read(l, i).stack != stack)
			continue;
		uses_of(o->shot.model, i, &x);
		own = oom_own_pass(o, i);
		if (x.count && oom_pass_at(o, x.last_seq) > own)
			longest = arithmetic_most(longest, oom_pass_at(o, x.last_seq) - own);
	}
	return longest;
}

/* So many passes have passed it by as none of its stack waited for. */
static bool is_passed_by(const struct search *s, const struct block *b)
{
	uint32_t own = b->life ? oom_own_pass(s->oom, b->life - 1) : s->now;

	return own < s->now && s->now - own > 2 * longest_wait(s->oom, b->stack);
}

static const struct block *first_of(const struct oom *o, const struct variable_at *x)
{
	uint64_t addr = x->variable->head.addr;

	return FIRST_OF(b, o->shot.moment.blocks, o->shot.moment.count,
			addr >= b->addr && addr - b->addr < b->size);
}

void oom_collected(struct oom *o)
{
	struct search s = { .oom = o, .now = oom_pass_at(o, o->refusal.event.seq) };
	const struct variable_at *in =
		FIRST_OF(i, o->variables, o->variable_count, i->variable->head.tensors >= PASSES);
	const struct block *first = in ? first_of(o, in) : NULL;
	const struct line *line;

	if (!first || !uses_complete(o->shot.model) || in->variable->head.bytes < o->allocated / 4)
		return;
	add_lines(&s);
	line = map_find(&s.lines, first->stack);
	if (line && line->passes >= PASSES && is_passed_by(&s, first)) {
		o->collected.in = in;
		o->collected.passes = line->passes;
		o->collected.bytes =
			arithmetic_least(in->variable->head.bytes,
					 SUM_OF(i, s.lines.items, s.lines.count, i->bytes));
	}
	map_items_free(&s.lines);
	map_free(&s.passes);
}
