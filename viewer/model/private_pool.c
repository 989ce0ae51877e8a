/* SPDX-License-Identifier: Apache-2.0 */
#include "private_pool.h"

#include "../../format/record.h"

#include "model_parts.h"

/*
 * Finds the private pool of each segment, and of each mapping of an expandable segment. It is the
 * pool that the recording names, or the pool of the first block, because all blocks of a segment
 * are in one pool.
 */

enum { EXPECTS_BLOCK = 1 };

void model_expect_block(struct model_device *d, struct history *segment)
{
	segment->block.mark = EXPECTS_BLOCK;
	d->unplaced++;
}

void model_drop_segment(struct model_device *d, const struct history *segment)
{
	d->unplaced -= segment->block.mark == EXPECTS_BLOCK;
}

static void place(struct model_device *d, struct history *segment, uint32_t pool)
{
	model_drop_segment(d, segment);
	segment->block.mark = 0;
	segment->facts.pool = pool;
}

void model_place_block(struct model *m, struct model_device *d, const struct gmt_event *e)
{
	uint32_t pool = pools_of(&d->pools, e);
	struct history *segment = live_enclosing(&m->memory, e->addr);

	if (segment && segment->block.mark == EXPECTS_BLOCK)
		place(d, segment, pool);
	segment = m->mapped.count ? live_enclosing(&m->mapped, e->addr) : NULL;
	while (segment && segment->block.addr < e->addr + e->size) {
		if (segment->block.mark == EXPECTS_BLOCK)
			place(d, segment, pool);
		segment = live_after(&m->mapped, segment);
	}
}

void model_graph(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	if (!d)
		return;
	pools_event(&d->pools, e);
	if (e->kind == GMT_GRAPH_BEGIN && !(e->flags & GMT_FLAG_OWN_POOL))
		*need_item(d->captures, d->capture_count, d->capture_room) = m->spans.forwards;
}

void model_segment_pool(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	uint32_t pool = d ? pools_number(&d->pools, e->arg0, e->arg1) : 0;
	struct tree *trees[] = { &m->memory, &m->mapped };

	for (int t = 0; t < 2 && d; t++)
		for (struct history *h = live_from(trees[t], e->addr);
		     h && h->block.addr - e->addr < e->size; h = live_after(trees[t], h))
			if (h->block.device == e->device && h->block.flags & GMT_FLAG_FRAMEWORK)
				place(d, h, pool);
}

uint32_t pools_number(struct pools *p, uint64_t first, uint64_t second)
{
	for (size_t i = 0; (first || second) && i < p->count; i++)
		if (p->items[i].first == first && p->items[i].second == second)
			return (uint32_t)i + 1;
	*need_item(p->items, p->count, p->room) = (struct pool){ .first = first, .second = second };
	return (uint32_t)p->count;
}

static bool is_on(const struct pool_user *u, const struct gmt_event *e)
{
	return u->own ? u->thread == e->thread : u->stream == e->stream;
}

static struct pool_user *capture_by_thread(const struct pools *p, const struct gmt_event *e)
{
	for (size_t i = p->user_count; i-- > 0;)
		if (!p->users[i].own && p->users[i].thread == e->thread)
			return &p->users[i];
	return NULL;
}

/* The pool user that an event's block belongs to. With `graphs`, the capture that it is about. */
static struct pool_user *user_now(const struct pools *p, const struct gmt_event *e, bool graphs)
{
	for (size_t i = p->user_count; i-- > 0;)
		if (!(graphs && p->users[i].own) && is_on(&p->users[i], e))
			return &p->users[i];
	return capture_by_thread(p, e);
}

static void drop(struct pools *p, struct pool_user *u)
{
	size_t after = p->users + p->user_count - (u + 1);

	memmove(u, u + 1, after * sizeof(*u));
	p->user_count--;
}

/* A capture that failed has no end. The next one on its stream or thread replaces it. */
static void begin_capture(struct pools *p, const struct gmt_event *e, bool own)
{
	struct pool_user *before = own ? NULL : user_now(p, e, true);
	uint32_t pool = pools_number(p, e->arg0, e->arg1);

	if (before)
		drop(p, before);
	p->items[pool - 1].own |= own;
	if (!own)
		p->items[pool - 1].graph = true;
	*need_item(p->users, p->user_count, p->user_room) =
		(struct pool_user){ e->stream, e->thread, pool, own };
}

/* The name of a pool that a graph made for itself is known when the capture ends. */
static void end_capture(struct pools *p, const struct gmt_event *e)
{
	struct pool_user *u = user_now(p, e, true);

	if (!u)
		return;
	p->items[u->pool - 1].first = e->arg0;
	p->items[u->pool - 1].second = e->arg1;
	drop(p, u);
}

static void end_own(struct pools *p, const struct gmt_event *e)
{
	uint32_t pool = pools_number(p, e->arg0, e->arg1);

	for (size_t i = p->user_count; i-- > 0;)
		if (p->users[i].own && p->users[i].pool == pool) {
			drop(p, &p->users[i]);
			return;
		}
}

void pools_event(struct pools *p, const struct gmt_event *e)
{
	bool own = e->flags & GMT_FLAG_OWN_POOL;

	if (e->kind == GMT_GRAPH_BEGIN)
		begin_capture(p, e, own);
	else
		(own ? end_own : end_capture)(p, e);
}

uint32_t pools_of(const struct pools *p, const struct gmt_event *e)
{
	const struct pool_user *u = p->user_count ? user_now(p, e, false) : NULL;

	return u ? u->pool : 0;
}

void pools_free(struct pools *p)
{
	free(p->items);
	free(p->users);
}
