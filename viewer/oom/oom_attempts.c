/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that no step needs: graphs of passes that ran out of memory and were followed by another
 * pass, and results that an evaluation gathers over many passes.
 */
#include <string.h>

#include "oom.h"

#define FEWEST 4 /* passes that are many */

static uint32_t forwards_at(const struct lives *l, uint64_t seq)
{
	uint32_t n = lives_born_by(l, seq);

	return n ? lives_position(l, lives_at(l, n - 1)->born.position)->forwards : 0;
}

static bool is_result(const struct oom *o, size_t i)
{
	const struct block *b = &o->shot.moment.blocks[i];
	enum category c = o->shot.classes[i];

	if (!oom_is_passing(c) || c == CATEGORY_kv_cache)
		return false;
	return b->state & LIFE_SAVED || model_born(o->shot.model, b)->stage == STAGE_FORWARD;
}

/* Another pass has begun, or gradients were cleared: nothing goes backward through it any more. */
static bool is_given_up(const struct oom *o, const struct lives_mark *refused, uint32_t pass,
			uint32_t now)
{
	struct row_store *marks = &o->timeline->model.lives.marks;

	for (uint32_t i = 0; i < marks->count && pass >= now; i++) {
		const struct lives_mark *m = rows_at(marks, i);

		if (m->seq > refused->seq && m->seq < o->refusal.event.seq &&
		    m->kind == GMT_RANGE_BEGIN &&
		    spans_range_kind(&o->timeline->model.spans, m->name) == RANGE_ZERO_GRAD)
			return true;
	}
	return pass && pass < now;
}

static void add_attempt(struct oom *o, const struct lives_mark *refused, uint32_t now)
{
	uint32_t pass = forwards_at(&o->timeline->model.lives, refused->seq);
	uint64_t bytes = 0;

	if (!is_given_up(o, refused, pass, now))
		return;
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (b->seq >= refused->seq || b->seq < o->attempts.from || !is_result(o, i) ||
		    model_born(o->shot.model, b)->forwards != pass)
			continue;
		bytes += b->size;
		if (b->size > o->attempts.largest.size)
			o->attempts.largest = *b;
	}
	o->attempts.from = refused->seq;
	o->attempts.bytes += bytes;
	o->attempts.count += bytes > 0;
}

static void find_attempts(struct oom *o)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t now = forwards_at(l, o->refusal.event.seq);
	bool reported = refusals_reported(l);

	for (uint32_t i = 0; i < l->marks.count; i++) {
		const struct lives_mark *m = rows_at(&l->marks, i);

		if (m->seq < o->refusal.event.seq && refusals_is_one(m, reported))
			add_attempt(o, m, now);
	}
}

/* The latest event of training: what was made after it belongs to the evaluation. */
static uint64_t trained_until(const struct oom *o)
{
	const struct spans *s = &o->timeline->model.spans;
	uint64_t last = 0;

	for (size_t i = 0; i < s->count && s->items[i].extent.first_seq < o->refusal.event.seq; i++)
		if (s->items[i].phase == PHASE_OPTIMIZER || s->items[i].phase == PHASE_BACKWARD)
			last = s->items[i].extent.last_seq;
	return last;
}

/* Forward passes since an event: how often the first line that made a result then did so. */
static size_t passes_since(const struct oom *o, uint64_t seq)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = lives_born_by(l, o->refusal.event.seq), first = 0;
	size_t passes = 0;

	for (uint32_t i = lives_born_by(l, seq); i < n; i++) {
		const struct life *row = lives_at(l, i);

		if (lives_position(l, row->born.position)->stage != STAGE_FORWARD)
			continue;
		first = first ? first : lives_request(l, row)->stack;
		passes += lives_request(l, row)->stack == first;
	}
	return passes;
}

/* "zeros", "new_empty", "full_like": it is written to later, where data comes from elsewhere. */
static bool is_made_empty(const struct oom *o, const struct block *b)
{
	static const char *const words[] = { "zeros", "empty", "full", "ones" };
	char name[64] = "";

	instant_operator(&o->timeline->stacks, b->stack, b->seq, name, sizeof(name));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

/* Made empty by the script outside of modules, and there through many passes that keep no graph. */
static void find_gathered(struct oom *o)
{
	uint64_t since = trained_until(o);

	for (size_t i = 0; i < o->shot.moment.count; i++)
		if (o->shot.moment.blocks[i].state & LIFE_SAVED)
			return;
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];
		size_t passes;

		if (b->seq <= since || o->shot.classes[i] != CATEGORY_inputs ||
		    b->state & LIFE_SAVED_BEFORE ||
		    model_born(o->shot.model, b)->stage != STAGE_OUTSIDE || !is_made_empty(o, b))
			continue;
		passes = passes_since(o, b->seq);
		if (passes < FEWEST)
			continue;
		o->gathered.bytes += b->size;
		if (b->size <= o->gathered.largest.size)
			continue;
		o->gathered.largest = *b;
		o->gathered.count = passes;
	}
}

void oom_attempts(struct oom *o)
{
	find_attempts(o);
	if (o->shot.model->spans.tags)
		find_gathered(o);
}
