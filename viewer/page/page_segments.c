/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of the framework's allocator, with the time and stack of each, and its pool. */
#include "../../format/record.h"
#include "../answers/private_pools.h"
#include "page.h"

enum { ROWS = 20000 };

static bool is_segment(const struct track *t, const struct position *p)
{
	return p->device == t->timeline->device &&
	       (p->layer == LIFE_MAPPED
			? p->flags & GMT_FLAG_FRAMEWORK
			: p->layer == LIFE_MEMORY && model_is_segment(p->memory, p->flags));
}

struct rows {
	struct bytes column;
	uint64_t seq, addr; /* of the previous row */
};

/* 1 + the kind of its private pool; 0 = not in a private pool */
static unsigned kind_of(struct track *t, uint32_t life)
{
	struct model *m = &t->timeline->model;
	const struct pool *pool;
	struct block b;

	model_block(m, life, &b);
	pool = model_pool(m, &b);
	return pool ? 1 + pool_kind(pool, &t->timeline->owners, b.stack) : 0;
}

static void segments_add_row(struct rows *r, struct track *t, uint32_t i)
{
	const struct lived x = lives_read(&t->timeline->model.lives, i);

	column_row(&r->column, x.from - r->seq, x.until == LIVES_OPEN ? 0 : x.until - x.from,
		   zigzag(x.row->addr - r->addr), x.size, x.born->memory,
		   track_stack(t, x.stack, x.from), kind_of(t, i));
	r->seq = x.from;
	r->addr = x.row->addr;
}

void segments_emit(struct track *t)
{
	const struct lives *l = &t->timeline->model.lives;
	struct emit *out = t->page->out;
	struct rows r = { .seq = 0 };
	size_t room = page_room(t->page, ROWS, 500), count = 0;

	for (uint32_t i = 0; i < l->rows.count; chunks_rest(l->pool), i++) {
		if (is_segment(t, lives_read(l, i).born) && count++ < room)
			segments_add_row(&r, t, i);
	}
	emit_object(out, "segments");
	emit_number(out, "count", count < room ? count : room);
	emit_number(out, "left_out", count < room ? 0 : count - room);
	emit_array(out, "pools");
	for (unsigned k = 0; k < POOL_KINDS; k++)
		emit_text(out, NULL, pool_kinds[k].text);
	emit_end(out);
	column_emit(&r.column, out, "rows");
	emit_end(out);
}

static void apart(struct emit *out, struct names *names, const char *what, uint64_t bytes,
		  const char *note)
{
	emit_object(out, NULL);
	emit_text(out, "what", what);
	emit_number(out, "bytes", bytes);
	emit_number(out, "note", names_word(names, note));
	emit_end(out);
}

void page_apart_emit(struct emit *out, struct names *names, const struct pool_sums *pools,
		     const struct room *room)
{
	char note[POOL_NOTE];

	emit_array(out, "apart");
	FOR_EACH (const struct pool_sum, p, pools->items, pools->count)
		apart(out, names, pool_kinds[p->kind].label, p->bytes - p->used,
		      pool_note(p, note, sizeof(note)));
	if (room->waiting)
		apart(out, names, WAITING, room->waiting, WAITING_NOTE);
	emit_end(out);
}
