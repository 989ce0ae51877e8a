/* SPDX-License-Identifier: Apache-2.0 */
#include "private_pool.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

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

/* The user that a block belongs to; or, `graphs` alone, the capture that an event is about. */
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

/* A capture that failed has no end: the next one on its stream or thread takes its place. */
static void begin(struct pools *p, const struct gmt_event *e, bool own)
{
	struct pool_user *before = own ? NULL : user_now(p, e, true);
	uint32_t pool = pools_number(p, e->arg0, e->arg1);

	if (before)
		drop(p, before);
	p->items[pool - 1].own |= own;
	p->items[pool - 1].graph |= !own;
	*need_item(p->users, p->user_count, p->user_room) =
		(struct pool_user){ e->stream, e->thread, pool, own };
}

/* The pool that a graph made for itself has its name from here on. */
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
		begin(p, e, own);
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
