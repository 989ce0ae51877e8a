/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that no step needs: graphs of passes that ran out of memory and were followed by another
 * pass.
 */
#include "oom.h"

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

void oom_attempts(struct oom *o)
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
