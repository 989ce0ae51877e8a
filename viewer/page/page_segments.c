/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the framework's cache holds, piece by piece: what it asked CUDA for, and when. */
#include <stdlib.h>

#include "../base/need.h"
#include "page.h"

enum { ROWS = 20000 };

static bool is_segment(const struct track *t, const struct block *b)
{
	return b->device == t->timeline.device && b->flags & GMT_FLAG_FRAMEWORK &&
	       (!b->memory || b->memory == GMT_MEM_DEVICE || b->memory == GMT_MEM_PITCHED);
}

static const struct block *segment_at(const struct track *t, const struct model *m, uint64_t addr)
{
	const struct block *b = tree_find(&m->memory, addr);

	if (!b || !is_segment(t, b))
		b = tree_find(&m->mapped, addr);
	return b && is_segment(t, b) ? b : NULL;
}

static void end(struct segments *s, uint64_t addr, const struct gmt_event *e)
{
	const uint32_t *at = map_get(&s->alive, addr);

	if (!at)
		return;
	s->items[*at].block.died_seq = e->seq;
	s->items[*at].block.died_ns = e->time_ns;
	s->items[*at].died_stack = e->stack;
	map_remove(&s->alive, addr);
}

/* What lies at that address now is what lay there before, or what was is over. */
static void compare(struct track *t, const struct gmt_event *e, const struct block *now)
{
	struct segments *s = &t->segments;
	const uint32_t *at = map_get(&s->alive, e->addr);
	bool fresh;

	if (at && now && s->items[*at].block.seq == now->seq)
		return;
	if (at)
		end(s, e->addr, e);
	if (!now)
		return;
	s->items = need_grow(s->items, &s->room, s->count, sizeof(*s->items));
	s->items[s->count] = (struct segment){ .block = *now };
	*map_put(&s->alive, e->addr, &fresh) = s->count++;
}

/* After an event that may touch many. */
static void sweep(struct track *t, const struct gmt_event *e, const struct model *m)
{
	struct segments *s = &t->segments;
	uint64_t *gone = need_new((s->alive.count + 1) * sizeof(*gone));
	size_t count = 0;

	for (size_t i = 0; i < s->alive.room; i++) {
		const struct map_slot *slot = &s->alive.slots[i];
		const struct block *now = slot->used ? segment_at(t, m, slot->key) : NULL;

		if (slot->used && (!now || now->seq != s->items[slot->value].block.seq))
			gone[count++] = slot->key;
	}
	while (count)
		end(s, gone[--count], e);
	free(gone);
}

void segments_event(struct track *t, const struct gmt_event *e, const struct model *m)
{
	switch (e->kind) {
	case GMT_MEM_ALLOC:
	case GMT_MEM_FREE:
	case GMT_MAP:
		compare(t, e, segment_at(t, m, e->addr));
		break;
	case GMT_UNMAP:
	case GMT_CTX_DESTROY:
		sweep(t, e, m);
		break;
	default:
		break;
	}
}

void segments_emit(struct track *t)
{
	const struct segments *s = &t->segments;
	struct emit *out = t->page->out;
	struct column c = { 0 };
	uint64_t before = 0, addr = 0;
	size_t room = page_room(t->page, ROWS, 500), rows = s->count < room ? s->count : room;

	for (size_t i = 0; i < rows; i++) {
		const struct block *b = &s->items[i].block;

		column_put(&c, b->seq - before);
		column_put(&c, b->died_seq ? b->died_seq - b->seq : 0);
		column_put_signed(&c, (int64_t)(b->addr - addr));
		column_put(&c, b->size);
		column_put(&c, b->memory);
		column_put(&c, track_stack(t, b->stack, b->seq));
		before = b->seq;
		addr = b->addr;
	}
	emit_object(out, "segments");
	emit_number(out, "count", rows);
	emit_number(out, "left_out", s->count - rows);
	column_emit(&c, out, "rows");
	emit_end(out);
}
