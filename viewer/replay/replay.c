/* SPDX-License-Identifier: Apache-2.0 */
/* One replay: performs every request in order and records the reserved bytes after each. */
#include "replay.h"

#include <sys/mman.h>

#include "replay_parts.h"

/* Reserved bytes at that event; lowers *next to the next event that changes them. */
static uint64_t reserved_at(const struct replay_outcome *o, size_t *at, uint64_t event,
			    uint64_t *next)
{
	while (*at < o->level_count && o->levels[*at].event <= event)
		++*at;
	if (*at < o->level_count && o->levels[*at].event < *next)
		*next = o->levels[*at].event;
	return *at ? o->levels[*at - 1].reserved : 0;
}

void replay_curve(FILE *f, const struct replay_try *tries, size_t count)
{
	size_t *at = need_new((count + 1) * sizeof(*at));

	fputs("request", f);
	for (size_t i = 0; i < count; i++)
		fprintf(f, ",\"%s\"", tries[i].conf);
	for (uint64_t event = 0, next; event != UINT64_MAX; event = next) {
		next = UINT64_MAX;
		fprintf(f, "\n%" PRIu64, event);
		for (size_t i = 0; i < count; i++)
			fprintf(f, ",%" PRIu64,
				reserved_at(&tries[i].outcome, &at[i], event, &next));
	}
	fputc('\n', f);
	free(at);
}

void pass_init(struct replay_pass *p, const struct requests *r, const struct alloc_settings *s,
	       const struct replay_limits *limits)
{
	struct allocator *a = &p->allocator;

	*p = (struct replay_pass){ .requests = r, .limits = limits };
	allocator_init(a, s);
	a->whole_pools = limits->whole_pools;
	if (r->total)
		a->device = r->total;
	if (limits->capacity)
		a->limit = limits->capacity;
	if (r->own_limit && !limits->capacity)
		a->allowed = r->own_limit - 1;
	if (s->fraction > 0 && r->total)
		a->allowed = (uint64_t)(s->fraction * (double)r->total);
	p->held = need_pages((r->lives.count + 1) * sizeof(*p->held));
	p->there = need_new((r->segment_count + 1) * sizeof(*p->there));
}

static uint64_t stream_of(const struct requests *r, uint16_t stream)
{
	return stream < r->stream_count ? r->streams[stream] : 0;
}

/* Places a block from before the recording at its recorded offset in its segment. */
static struct piece *take_there(struct replay_pass *p, const struct request_life *life,
				uint64_t bytes)
{
	uint32_t s = life->segment - 1;
	uint64_t offset = life->addr - p->requests->segments[s].addr;

	return allocator_take_at(&p->allocator, p->there[s], p->there[s]->addr + offset, bytes);
}

static void replay_take(struct replay_pass *p, uint32_t number)
{
	const struct request_life *life = requests_life(p->requests, number);
	uint64_t block = (uint64_t)life->units * UNIT;
	uint64_t bytes = p->whole_blocks ? block : requests_asked(p->requests, number);
	struct piece **held = &p->held[number];

	if (life->there && life->segment && p->there[life->segment - 1])
		*held = take_there(p, life, block);
	if (!*held)
		*held = allocator_take(&p->allocator, bytes, stream_of(p->requests, life->stream),
				       life->segment ? p->requests->segments[life->segment - 1].pool
						     : life->pool);
}

static void replay_give(struct replay_pass *p, uint32_t number)
{
	struct piece **held = &p->held[number];

	if (!*held)
		return;
	if (requests_life(p->requests, number)->used) {
		allocator_give_used(&p->allocator, held);
	} else {
		allocator_give(&p->allocator, *held);
		*held = NULL;
	}
}

static void there(struct replay_pass *p, uint32_t number)
{
	const struct request_segment *s = &p->requests->segments[number];

	if (p->allocator.settings.expandable)
		return;
	p->there[number] =
		allocator_there(&p->allocator, s->bytes, stream_of(p->requests, s->stream));
}

bool pass_do(struct replay_pass *p, const struct request *q)
{
	const struct requests *r = p->requests;
	uint32_t pool;

	if (p->done++ % 65536 == 0)
		say_progress("replaying requests", p->done, r->list.count);
	switch (q->kind) {
	case REQUEST_TAKE:
		replay_take(p, q->value);
		return true;
	case REQUEST_REFUSED: /* its later life is unknown, so it is freed */
		replay_take(p, q->value);
		replay_give(p, q->value);
		return true;
	case REQUEST_GIVE:
		replay_give(p, q->value);
		return true;
	case REQUEST_READY:
		allocator_ready(&p->allocator, &p->held[q->value]);
		return false;
	case REQUEST_EMPTY:
		allocator_empty(&p->allocator);
		return false;
	case REQUEST_CAPTURE:
		if (q->value)
			allocator_empty(&p->allocator);
		return false;
	case REQUEST_RELEASED:
		pool = r->segments[q->value].pool;
		if (pool)
			allocator_pool_over(&p->allocator, pool);
		if (r->segments[q->value].own)
			allocator_empty_pool(&p->allocator, pool);
		return false;
	case REQUEST_THERE:
		there(p, q->value);
		return false;
	case REQUEST_LIMIT:
		if (!p->limits->capacity)
			p->allocator.limit = (uint64_t)q->value * UNIT;
		return false;
	}
	return false;
}

void pass_free(struct replay_pass *p)
{
	allocator_free(&p->allocator);
	munmap(p->held, (p->requests->lives.count + 1) * sizeof(*p->held));
	free(p->there);
}

static void keep_level(struct replay_outcome *o, uint64_t event, uint64_t reserved)
{
	if (o->level_count && o->levels[o->level_count - 1].reserved == reserved)
		return;
	*need_item(o->levels, o->level_count, o->level_room) =
		(struct replay_level){ event, reserved };
}

void replay_run(struct replay_outcome *o, const struct requests *r, const struct alloc_settings *s,
		const struct replay_limits *limits)
{
	struct replay_pass p;
	uint64_t recorded = 0;
	bool counted = false;

	memset(o, 0, sizeof(*o));
	pass_init(&p, r, s, limits);
	for (uint32_t i = 0; i < r->list.count; i++) {
		const struct request *q = requests_at(r, i);

		if (counted && q->kind == REQUEST_AFTER)
			recorded = (uint64_t)q->value * UNIT;
		if (counted)
			o->agree += p.allocator.reserved == recorded;
		counted = pass_do(&p, q);
		if (counted && limits->keep_levels)
			keep_level(o, o->events, p.allocator.reserved);
		o->events += counted;
		if (limits->stop_at && p.allocator.peak_reserved >= limits->stop_at)
			break;
	}
	if (counted)
		o->agree += p.allocator.reserved == recorded;
	o->peak_bytes = p.allocator.peak_allocated;
	o->peak_reserved_bytes = p.allocator.peak_reserved;
	o->retries = p.allocator.retries;
	o->ooms = p.allocator.ooms;
	pass_free(&p);
}

void replay_outcome_free(struct replay_outcome *o)
{
	free(o->levels);
}
