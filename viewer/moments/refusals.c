/* SPDX-License-Identifier: Apache-2.0 */
#include "refusals.h"

#include "../../format/mem_traits.h"
#include "../model/model.h"

/* Failed calls of the framework's allocator do not count: it tries again, and reports a failure. */
bool refusals_is_one(const struct lives_mark *m, bool reported)
{
	if (m->kind == GMT_BLOCK_OOM || reported)
		return m->kind == GMT_BLOCK_OOM;
	return m->kind == GMT_MEM_FAIL && m->device >= 0 && gmt_mem_is_on_device(m->number) &&
	       (!(m->flags & GMT_FLAG_FRAMEWORK) || m->number == GMT_MEM_ASYNC);
}

bool refusals_reported(const struct lives *l)
{
	for (uint32_t i = 0; i < l->marks.count; i++)
		if (((const struct lives_mark *)rows_at(&l->marks, i))->kind == GMT_BLOCK_OOM)
			return true;
	return false;
}

/* Whether the thread got a block in between, so that the call failed for another request. */
static bool went_on(const struct lives *l, const struct lives_mark *fail, uint64_t until)
{
	uint32_t end = lives_born_by(l, until);

	for (uint32_t i = lives_born_by(l, fail->seq); i < end; i++) {
		const struct position *p = lives_position(l, lives_at(l, i)->born.position);

		if (p->layer == LIFE_BLOCK && !p->memory && p->thread == fail->thread)
			return true;
	}
	return false;
}

/* Finds the CUDA call that failed for it: the framework's latest, since the report before. */
static void find_fail(struct refusal *r, const struct lives *l, uint32_t at)
{
	const struct lives_mark *e = &r->event, *m = NULL;

	if (e->kind == GMT_MEM_FAIL) {
		r->fail = *e;
		return;
	}
	while (at-- > 0) {
		m = rows_at(&l->marks, at);
		if (m->kind == GMT_BLOCK_OOM)
			return;
		if (m->kind == GMT_MEM_FAIL && m->flags & GMT_FLAG_FRAMEWORK)
			break;
	}
	if (m && m->kind == GMT_MEM_FAIL && m->thread == e->thread && m->device == e->device &&
	    !went_on(l, m, e->seq))
		r->fail = *m;
}

static void count_later(struct refusal *r, const struct lives *l)
{
	bool calls = r->event.kind == GMT_MEM_FAIL;

	for (uint32_t i = lives_born_by(l, r->event.seq); i < l->rows.count; i++) {
		const struct position *p = lives_position(l, lives_at(l, i)->born.position);

		if ((p->layer == LIFE_BLOCK ? !p->memory : calls && p->counts) &&
		    p->device == r->event.device)
			r->later_allocs++;
	}
}

bool refusals_find(struct refusal *out, const struct lives *l, uint64_t nth)
{
	bool reported = refusals_reported(l);
	uint64_t latest = 0, before;
	uint32_t at = 0;

	*out = (struct refusal){ 0 };
	for (uint32_t i = 0; i < l->marks.count; i++) {
		const struct lives_mark *m = rows_at(&l->marks, i);

		if (!refusals_is_one(m, reported))
			continue;
		before = latest;
		latest = m->seq;
		if (++out->count != nth && nth)
			continue;
		out->event = *m;
		out->before = before;
		out->nth = out->count;
		at = i;
	}
	if (!out->nth)
		return false;
	find_fail(out, l, at);
	count_later(out, l);
	return true;
}
