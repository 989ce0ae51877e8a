/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of spans. Each curve keeps its first and its highest value in the latest span. When the
 * next span begins, each curve that changed becomes a row of the span that ended.
 */
#include "../base/sorted.h"
#include "doing.h"

/* Wraps around, because sizes in a damaged file can be anything. */
static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

void extent_join(struct extent *a, const struct extent *b)
{
	a->last_ns = b->last_ns;
	a->last_seq = b->last_seq;
	a->end_bytes = b->end_bytes;
	a->growth = sum(a->growth, b->growth);
	if (b->peak <= a->peak)
		return;
	a->peak = b->peak;
	a->peak_seq = b->peak_seq;
	a->peak_ns = b->peak_ns;
	a->peak_stack = b->peak_stack;
	a->peak_node = b->peak_node;
}

struct span_level *spans_add_level(struct spans *s, const uint64_t *now)
{
	struct span_level *level = need_new(sizeof(*level));

	level->now = now;
	level->number = (uint32_t)s->level_count;
	level->extent.begin_bytes = level->extent.peak = *now;
	*need_item(s->levels, s->level_count, s->level_room) = level;
	return level;
}

static struct span_change *row_of_level(const struct spans *s, const struct span *span,
					uint32_t level)
{
	for (uint32_t i = span->changes; i; i = s->changes[i - 1].next)
		if (s->changes[i - 1].level == level)
			return &s->changes[i - 1];
	return NULL;
}

/* 1 + the index of an unused row. */
static uint32_t free_row(struct spans *s)
{
	uint32_t row = s->change_free;

	if (row) {
		s->change_free = s->changes[row - 1].next;
		return row;
	}
	need_item(s->changes, s->change_count, s->change_room);
	return (uint32_t)s->change_count;
}

static void add_row(struct spans *s, struct span *span, const struct span_change *c)
{
	struct span_change *row = row_of_level(s, span, c->level);

	if (!row) {
		uint32_t at = free_row(s);

		s->changes[at - 1] = *c;
		s->changes[at - 1].next = span->changes;
		span->changes = at;
		return;
	}
	extent_join(&row->extent, &c->extent);
}

/* Frees each row of b for reuse, because most spans are soon joined to another. */
void levels_join(struct spans *s, struct span *a, struct span *b)
{
	while (b->changes) {
		uint32_t at = b->changes;
		struct span_change c = s->changes[at - 1];

		b->changes = c.next;
		s->changes[at - 1].next = s->change_free;
		s->change_free = at;
		add_row(s, a, &c);
	}
}

void levels_end(struct spans *s)
{
	struct span *span = &s->items[s->count - 1];

	for (size_t i = 0; i < s->level_count; i++) {
		const struct span_level *l = s->levels[i];
		struct span_change c = { .level = l->number, .extent = l->extent };
		uint64_t begin = l->extent.begin_bytes;

		/* spans that take turns need a row: none begins where the one before it ended */
		if (*l->now == begin && l->extent.peak == begin && !span->in_backward)
			continue;
		c.extent.end_bytes = *l->now;
		c.extent.growth = (int64_t)(*l->now - begin);
		add_row(s, span, &c);
	}
}

void levels_begin(struct spans *s, const struct gmt_event *e)
{
	for (size_t i = 0; i < s->level_count; i++) {
		struct span_level *l = s->levels[i];

		l->extent = (struct extent){ .begin_bytes = *l->now,
					     .peak = *l->now,
					     .peak_seq = e->seq,
					     .peak_ns = e->time_ns };
	}
}

static struct extent measured(const struct extent *span, const struct span_change *c,
			      uint64_t bytes)
{
	struct extent x =
		c ? c->extent
		  : (struct extent){ .begin_bytes = bytes, .end_bytes = bytes, .peak = bytes };

	x.first_ns = span->first_ns;
	x.last_ns = span->last_ns;
	x.first_seq = span->first_seq;
	x.last_seq = span->last_seq;
	if (x.peak > x.begin_bytes)
		return x;
	x.peak = x.begin_bytes;
	x.peak_seq = x.first_seq;
	x.peak_ns = x.first_ns;
	x.peak_stack = x.peak_node = 0;
	return x;
}

/* The latest span is not over: its changes so far become a row, which later ones join. */
void spans_measure(struct spans *s, const struct span_level *level)
{
	const struct gmt_event last = { .seq = s->last_seq, .time_ns = s->last_ns };
	uint64_t bytes = 0;

	if (!s->count)
		return;
	levels_end(s);
	levels_begin(s, &last);
	for (size_t i = 0; i < s->count; i++) {
		struct extent *x = &s->items[i].extent;

		*x = measured(x, level ? row_of_level(s, &s->items[i], level->number) : NULL,
			      bytes);
		bytes = x->end_bytes;
	}
}

size_t extents_begun(const struct extent *first, size_t each, size_t count, uint64_t seq)
{
	const char *items = (const char *)first;

	return SORTED_FIRST(count, i,
			    ((const struct extent *)(items + i * each))->first_seq <= seq);
}
