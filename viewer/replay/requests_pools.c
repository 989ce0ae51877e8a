/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private pool of each block. The recording shows where a capture of a CUDA graph, or a thread,
 * begins to use one. The latest use that matches a block counts: a capture matches by its stream,
 * else by its thread; a pool of the program matches by thread only.
 */
#include <string.h>

#include "../base/need.h"
#include "requests_parts.h"

/* Number of a pool by its name; a pool without a name is new. */
static uint32_t pool_number(struct requests *r, uint64_t first, uint64_t second)
{
	for (size_t i = 0; (first || second) && i < r->named_count; i++)
		if (r->named[i].first == first && r->named[i].second == second)
			return (uint32_t)i + 1;
	*need_item(r->named, r->named_count, r->named_room) =
		(struct request_pool){ .first = first, .second = second };
	return r->pools = (uint32_t)r->named_count;
}

static bool is_on(const struct request_capture *c, const struct gmt_event *e)
{
	return c->own ? c->thread == e->thread : c->stream == e->stream;
}

static struct request_capture *capture_by_thread(const struct requests *r,
						 const struct gmt_event *e)
{
	for (size_t i = r->capture_count; i-- > 0;)
		if (!r->captures[i].own && r->captures[i].thread == e->thread)
			return &r->captures[i];
	return NULL;
}

/* The use that a block belongs to; with `graphs`, the capture that an event belongs to. */
static struct request_capture *capture_now(const struct requests *r, const struct gmt_event *e,
					   bool graphs)
{
	for (size_t i = r->capture_count; i-- > 0;)
		if (!(graphs && r->captures[i].own) && is_on(&r->captures[i], e))
			return &r->captures[i];
	return capture_by_thread(r, e);
}

static void drop(struct requests *r, struct request_capture *c)
{
	size_t after = r->captures + r->capture_count - (c + 1);

	memmove(c, c + 1, after * sizeof(*c));
	r->capture_count--;
}

/* The latest one, because failed captures have no end. */
void requests_capture(struct requests *r, const struct gmt_event *e)
{
	struct request_capture *c = capture_now(r, e, true);

	if (c)
		drop(r, c);
	*need_item(r->captures, r->capture_count, r->capture_room) =
		(struct request_capture){ e->stream, e->thread, pool_number(r, e->arg0, e->arg1),
					  false };
}

/* From here on the pool that a graph made has a name. */
void requests_captured(struct requests *r, const struct gmt_event *e)
{
	struct request_capture *c = capture_now(r, e, true);

	if (!c)
		return;
	r->named[c->pool - 1].first = e->arg0;
	r->named[c->pool - 1].second = e->arg1;
	drop(r, c);
}

void requests_own_begin(struct requests *r, const struct gmt_event *e)
{
	uint32_t pool = pool_number(r, e->arg0, e->arg1);

	r->named[pool - 1].own = true;
	*need_item(r->captures, r->capture_count, r->capture_room) =
		(struct request_capture){ e->stream, e->thread, pool, true };
}

void requests_own_end(struct requests *r, const struct gmt_event *e)
{
	uint32_t pool = pool_number(r, e->arg0, e->arg1);

	for (size_t i = r->capture_count; i-- > 0;)
		if (r->captures[i].own && r->captures[i].pool == pool) {
			drop(r, &r->captures[i]);
			return;
		}
}

uint32_t requests_pool(const struct requests *r, const struct gmt_event *e)
{
	const struct request_capture *c = r->capture_count ? capture_now(r, e, false) : NULL;

	return c ? c->pool : 0;
}

bool requests_pool_own(const struct requests *r, uint32_t pool)
{
	return pool && pool <= r->named_count && r->named[pool - 1].own;
}
