/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include "../../format/record.h"
#include "../base/arithmetic.h"

/* Live blocks, and freed ones that wait for a stream, each in order of address. */
struct taken {
	const struct block *lists[2];
	size_t counts[2];
};

static const struct block *next_taken(const struct taken *t, struct taken *at)
{
	const struct block *found = NULL;
	int of = 0;

	for (int i = 0; i < 2; i++)
		if (at->counts[i] < t->counts[i] &&
		    (!found || t->lists[i][at->counts[i]].addr < found->addr)) {
			found = &t->lists[i][at->counts[i]];
			of = i;
		}
	at->counts[of] += found != NULL;
	return found;
}

/* Measures the free memory of a piece that begins at start; *at advances along the blocks. */
static void measure(struct room_piece *p, const struct taken *t, uint64_t start, struct taken *at)
{
	uint64_t free_from = start, end = start + p->bytes;
	const struct block *b;
	struct taken before = *at;

	for (; (b = next_taken(t, at)) && b->addr < end; before = *at) {
		uint64_t b_end = b->addr + b->size;

		if (b_end <= start)
			continue;
		if (b->addr > free_from && b->addr - free_from > p->hole)
			p->hole = b->addr - free_from;
		p->used += (b_end < end ? b_end : end) - (b->addr > start ? b->addr : start);
		free_from = b_end > free_from ? b_end : free_from;
	}
	*at = before;
	if (end > free_from && end - free_from > p->hole)
		p->hole = end - free_from;
}

static void segments(const struct model *m, const struct moment *mo, const struct taken *t,
		     room_visit *visit, void *ctx)
{
	struct taken at = { 0 };

	FOR_EACH (const struct block, b, mo->memory, mo->memory_count) {
		struct room_piece p = { .segment = b, .bytes = b->size };

		if (b->device != mo->device || !model_is_segment(b->memory, b->flags))
			continue;
		p.pool = model_pool(m, b);
		measure(&p, t, b->addr, &at);
		visit(ctx, &p);
	}
}

void room_pieces(const struct model *m, const struct moment *mo, room_visit *visit, void *ctx)
{
	const struct taken t = { { mo->blocks, mo->waiting }, { mo->count, mo->waiting_count } };
	struct taken at = { 0 };

	segments(m, mo, &t, visit, ctx);
	for (size_t i = 0; i < mo->mapped_count; i++) {
		const struct block *b = &mo->mapped[i], *next = b + 1;
		struct room_piece p = { .segment = b, .pool = model_pool(m, b), .bytes = b->size };

		for (; i + 1 < mo->mapped_count && next->addr == b->addr + p.bytes &&
		       model_pool(m, next) == p.pool;
		     i++)
			p.bytes += next++->size;
		measure(&p, &t, b->addr, &at);
		if (b->flags & GMT_FLAG_FRAMEWORK)
			visit(ctx, &p);
	}
}

struct looking {
	struct room *room;
	const struct pool *pool;
};

static void add_piece(void *ctx, const struct room_piece *p)
{
	struct looking *l = ctx;

	if (p->pool != l->pool)
		l->room->apart += p->bytes - p->used;
	else if (p->hole > l->room->hole)
		l->room->hole = p->hole;
}

struct room room_at(const struct model *m, const struct moment *mo, const struct pool *pool)
{
	struct room r = { .total = mo->total_bytes,
			  .free = mo->free_bytes, /* an imported snapshot has no total */
			  .reserved = mo->framework && mo->reserved ? mo->reserved : mo->bytes };
	struct looking l = { &r, pool };

	r.sampled = r.total || r.free;
	if (r.total)
		r.free = arithmetic_beyond(r.total, mo->driver + mo->context);
	if (r.reserved <= mo->bytes)
		return r;
	for (size_t i = 0; i < mo->waiting_count; i++)
		r.waiting += mo->waiting[i].size;
	room_pieces(m, mo, add_piece, &l);
	r.cached = arithmetic_beyond(r.reserved, mo->bytes + r.waiting + r.apart);
	return r;
}
