/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the recording's own allocator answered says what it does not: a block that was cut from a
 * larger piece is as large as what was asked for (rounded), one that was a whole piece may be up to
 * 1 MiB larger; and a segment that was made although a cached piece would have done belongs to a
 * private pool (of a CUDA graph).
 */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "replay_parts.h"

#define SLACK 2048u /* units of which a whole piece may be larger */

struct study {
	struct requests *requests;
	struct replay_pass pass;
	uint32_t *current; /* private pool of each stream's latest block */
};

/* The pool of a segment that was made for a block. */
static uint32_t pool_of_new(struct study *s, const struct request_life *life)
{
	struct requests *r = s->requests;
	uint64_t stream = r->streams[life->stream], bytes = (uint64_t)life->units * UNIT;
	uint32_t now = s->current[life->stream];

	if (!stream || r->expandable)
		return 0;
	if (!allocator_has(&s->pass.allocator, bytes, stream, now))
		return now;
	if (now && !allocator_has(&s->pass.allocator, bytes, stream, 0))
		return 0;
	return ++r->pools;
}

static void study_take(struct study *s, const struct request *q)
{
	struct request_life *life = requests_life(s->requests, q->value);
	struct request_segment *segment =
		life->segment ? &s->requests->segments[life->segment - 1] : NULL;
	bool small = life->units <= SLACK;

	if (segment && life->fresh && !life->there)
		segment->pool = pool_of_new(s, life);
	s->current[life->stream] = segment ? segment->pool : 0;
	pass_do(&s->pass, q, (uint64_t)life->units * UNIT);
	if (s->pass.allocator.cut || small) {
		life->asked = life->units;
		life->exact = true;
	} else if (life->asked) {
		life->exact = life->units - life->asked <= SLACK;
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sizes that are known, in order; each as often as it was asked for. */
struct known {
	uint32_t *sizes;
	size_t count, room;
};

static void known_sizes(struct known *k, const struct requests *r)
{
	for (uint32_t i = 0; i < r->lives.count; i++) {
		const struct request_life *life = requests_life(r, i);

		if (!life->exact || life->asked <= SLACK)
			continue;
		k->sizes = need_grow(k->sizes, &k->room, k->count, sizeof(*k->sizes));
		k->sizes[k->count++] = life->asked;
	}
	qsort(k->sizes, k->count, sizeof(*k->sizes), by_size);
}

static size_t first_from(const struct known *k, uint32_t size)
{
	size_t low = 0, high = k->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (k->sizes[middle] < size)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The size that was asked for most often of those that the block could be for; itself if none. */
static uint32_t likely(const struct known *k, uint32_t units)
{
	size_t best = 0, next;
	uint32_t found = units;

	for (size_t i = first_from(k, units - SLACK); i < k->count && k->sizes[i] <= units; i = next) {
		next = first_from(k, k->sizes[i] + 1);
		if (next - i >= best) {
			best = next - i;
			found = k->sizes[i];
		}
	}
	return found;
}

/* The same line of code asks for the same again, else others for something of the same kind. */
static void guess(struct requests *r)
{
	struct known known = { 0 };
	struct map by_stack = { 0 };

	known_sizes(&known, r);
	for (uint32_t i = 0; i < r->lives.count; i++) {
		struct request_life *life = requests_life(r, i);
		uint32_t *same = map_get(&by_stack, life->stack);

		if (life->exact)
			*map_put(&by_stack, life->stack, NULL) = life->asked;
		else if (same && *same <= life->units && life->units - *same <= SLACK)
			life->asked = *same;
		else
			life->asked = likely(&known, life->units);
	}
	map_free(&by_stack);
	free(known.sizes);
}

void replay_study(struct requests *r, const struct alloc_settings *own)
{
	const struct replay_limits limits = { .whole_pools = true };
	struct study s = { .requests = r };

	pass_init(&s.pass, r, own, &limits);
	s.current = need_new((r->stream_count + 1) * sizeof(*s.current));
	for (uint32_t i = 0; i < r->list.count; i++) {
		const struct request *q = requests_at(r, i);

		if (q->kind == REQUEST_TAKE)
			study_take(&s, q);
		else
			pass_do(&s.pass, q,
				q->kind == REQUEST_REFUSED
					? (uint64_t)requests_life(r, q->value)->units * UNIT
					: 0);
	}
	pass_free(&s.pass);
	free(s.current);
	guess(r);
}
