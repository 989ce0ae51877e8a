/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the framework's cache holds, piece by piece: what it asked CUDA for, and when. */
#include "page.h"

enum { ROWS = 20000 };

static bool is_segment(const struct track *t, const struct position *p)
{
	return p->device == t->timeline->device && p->flags & GMT_FLAG_FRAMEWORK &&
	       (p->layer == LIFE_MAPPED ||
		(p->layer == LIFE_MEMORY &&
		 (p->memory == GMT_MEM_DEVICE || p->memory == GMT_MEM_PITCHED)));
}

struct rows {
	struct bytes column;
	uint64_t seq, addr; /* of the row before */
};

static void put(struct rows *r, struct track *t, const struct life *life, const struct position *p)
{
	const struct lives *l = &t->timeline->model.lives;
	const struct life_request *made = lives_request(l, life);
	uint64_t born = lives_seq(l, &life->born), died = lives_seq(l, &life->died);

	column_row(&r->column, born - r->seq, died ? died - born : 0, zigzag(life->addr - r->addr),
		   made->size, p->memory, track_stack(t, made->stack, born));
	r->seq = born;
	r->addr = life->addr;
}

void segments_emit(struct track *t)
{
	const struct lives *l = &t->timeline->model.lives;
	struct emit *out = t->page->out;
	struct rows r = { .seq = 0 };
	size_t room = page_room(t->page, ROWS, 500), count = 0;

	for (uint32_t i = 0; i < l->rows.count; i++) {
		const struct life *life = lives_at(l, i);
		const struct position *p = lives_position(l, life->born.position);

		if (is_segment(t, p) && count++ < room)
			put(&r, t, life, p);
	}
	emit_object(out, "segments");
	emit_number(out, "count", count < room ? count : room);
	emit_number(out, "left_out", count < room ? 0 : count - room);
	column_emit(&r.column, out, "rows");
	emit_end(out);
}
