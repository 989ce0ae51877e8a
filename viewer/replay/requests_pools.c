/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which private pool a block came from: captures of CUDA graphs begin and end in the recording. A
 * block belongs to the capture on its stream, else to the one on its thread.
 */
#include "../base/need.h"
#include "requests_parts.h"

/* The number of a pool by its name; a pool without one is a new one. */
static uint32_t pool_number(struct requests *r, uint64_t first, uint64_t second)
{
	struct request_pool *p;

	for (size_t i = 0; (first || second) && i < r->named_count; i++)
		if (r->named[i].first == first && r->named[i].second == second)
			return r->named[i].number;
	r->named = need_grow(r->named, &r->named_room, r->named_count, sizeof(*r->named));
	p = &r->named[r->named_count++];
	*p = (struct request_pool){ first, second, ++r->pools };
	return p->number;
}

static struct request_capture *capture_on(const struct requests *r, const struct gmt_event *e)
{
	struct request_capture *found = NULL;

	for (size_t i = 0; i < r->capture_count; i++) {
		struct request_capture *c = &r->captures[i];

		if (c->stream == e->stream)
			return c;
		if (c->thread == e->thread)
			found = c;
	}
	return found;
}

void requests_capture(struct requests *r, const struct gmt_event *e)
{
	struct request_capture *c = capture_on(r, e);

	if (!c) {
		r->captures = need_grow(r->captures, &r->capture_room, r->capture_count,
					sizeof(*r->captures));
		c = &r->captures[r->capture_count++];
	}
	*c = (struct request_capture){ e->stream, e->thread, pool_number(r, e->arg0, e->arg1) };
}

/* The pool that a graph made for itself has its name from here on. */
void requests_captured(struct requests *r, const struct gmt_event *e)
{
	struct request_capture *c = capture_on(r, e);

	if (!c)
		return;
	for (size_t i = 0; i < r->named_count; i++)
		if (r->named[i].number == c->pool) {
			r->named[i].first = e->arg0;
			r->named[i].second = e->arg1;
		}
	*c = r->captures[--r->capture_count];
}

uint32_t requests_pool(const struct requests *r, const struct gmt_event *e)
{
	const struct request_capture *c = r->capture_count ? capture_on(r, e) : NULL;

	return c ? c->pool : 0;
}
