/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers facts that the recording lacks from its own allocator's decisions. A block cut from a
 * larger piece has the (rounded) requested size; a block that was a whole piece can be up to 1 MiB
 * larger than the request. If the recording does not show where graphs are captured, a new segment
 * that a cached piece could have replaced belongs to a graph's private pool.
 *
 * torch.cuda.graph empties the cache before a capture. A release there is recorded. If there was
 * something to release and nothing was released, the program did not empty the cache.
 */
#include "../base/sorted.h"
#include "replay_parts.h"

#define SLACK 2048u /* units by which a whole piece can be larger */

struct study {
	struct requests *requests;
	struct replay_pass pass;
	uint32_t *current; /* private pool of each stream's latest block */
};

/* The pool of a new segment, made for this block. */
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
	return (uint32_t)r->pools.count + ++r->guessed;
}

static void study_take(struct study *s, const struct request *q)
{
	struct request_life *life = requests_life(s->requests, q->value);
	struct request_segment *segment =
		life->segment ? &s->requests->segments[life->segment - 1] : NULL;
	bool small = life->units <= SLACK;

	if (segment && life->fresh && !life->there && !s->requests->tells_pools && !segment->told)
		segment->pool = pool_of_new(s, life);
	s->current[life->stream] = segment ? segment->pool : 0;
	pass_do(&s->pass, q);
	if (life->tells) {
		life->asked = life->asked ? life->asked : life->units;
		life->exact = true;
	} else if (s->pass.allocator.cut || small) {
		life->asked = life->units;
		life->exact = true;
	} else {
		life->least = (uint32_t)(s->pass.allocator.below / UNIT) + 1;
		if (life->least + SLACK < life->units)
			life->least = life->units - SLACK;
		life->exact = life->asked >= life->least;
	}
}

/* A known size, and the line of code that requested it. */
struct known {
	uint32_t stack, units;
};

struct known_list {
	struct known *items;
	size_t count, room;
};

COMPARE(in_order, struct known, ORDER(x->stack, y->stack) ?: ORDER(x->units, y->units))

/* Known sizes, one entry per request; stack 0 stands for all of them. */
static void known_sizes(struct known_list *k, const struct requests *r)
{
	for (uint32_t i = 0; i < r->lives.count; i++) {
		const struct request_life *life = requests_life(r, i);

		if (!life->exact || life->asked <= SLACK)
			continue;
		for (int all = 0; all < 2; all++)
			*need_item(k->items, k->count, k->room) =
				(struct known){ all ? 0 : life->stack, life->asked };
	}
	SORT(k->items, k->count, in_order);
}

static size_t first_from(const struct known_list *k, struct known from)
{
	return SORTED_FIRST(k->count, i, in_order(&k->items[i], &from) < 0);
}

/* The size that this line requested most often among those that fit the block; 0: none. */
static uint32_t likely(const struct known_list *k, uint32_t stack, const struct request_life *life)
{
	size_t next, most = 0, i = first_from(k, (struct known){ stack, life->least });
	uint32_t found = 0;

	while (i < k->count && k->items[i].stack == stack && k->items[i].units <= life->units) {
		next = first_from(k, (struct known){ stack, k->items[i].units + 1 });
		if (next - i >= most) {
			most = next - i;
			found = k->items[i].units;
		}
		i = next;
	}
	return found;
}

/* Assumes that a line of code requests the same sizes again; else uses other lines' sizes of the
 * same kind. */
static void guess(struct requests *r)
{
	struct known_list known = { 0 };

	known_sizes(&known, r);
	for (uint32_t i = 0; i < r->lives.count; i++) {
		struct request_life *life = requests_life(r, i);

		if (life->exact)
			continue;
		life->asked = likely(&known, life->stack, life);
		if (!life->asked)
			life->asked = likely(&known, 0, life);
		if (!life->asked)
			life->asked = life->units;
	}
	free(known.items);
}

void replay_study(struct requests *r, const struct alloc_settings *own)
{
	const struct replay_limits limits = { .whole_pools = true };
	struct study s = { .requests = r };

	pass_init(&s.pass, r, own, &limits);
	s.pass.whole_blocks = true;
	s.current = need_new((r->stream_count + 1) * sizeof(*s.current));
	for (uint32_t i = 0; i < r->list.count; i++) {
		struct request *q = requests_at(r, i);

		if (q->kind == REQUEST_CAPTURE && allocator_would_release(&s.pass.allocator))
			q->value = 0;
		if (q->kind == REQUEST_TAKE)
			study_take(&s, q);
		else
			pass_do(&s.pass, q);
	}
	pass_free(&s.pass);
	free(s.current);
	guess(r);
}
