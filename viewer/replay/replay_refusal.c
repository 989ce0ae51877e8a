/* SPDX-License-Identifier: Apache-2.0 */
/* Finds whether the request that failed in the recorded run would succeed with a setting. */
#include "replay_trial.h"

#include "../base/arithmetic.h"
#include "replay_parts.h"

static uint64_t room(const struct allocator *a)
{
	return arithmetic_least(a->limit, a->allowed);
}

/* Bytes of the device that are left after the cache is emptied. */
static uint64_t to_spare(struct allocator *a)
{
	allocator_empty(a);
	return arithmetic_beyond(room(a), a->reserved);
}

/* Repeats the request on an unlimited device; returns the bytes that were missing. */
static uint64_t lacking(struct replay_pass *p, const struct request *q)
{
	uint64_t had = room(&p->allocator), bytes = requests_asked(p->requests, q->value);

	p->allocator.limit = p->allocator.allowed = UINT64_MAX;
	p->allocator.device += 2 * bytes; /* an expandable segment has addresses for it */
	pass_do(p, q);
	return arithmetic_beyond(p->allocator.reserved, had);
}

static uint32_t last_refused(const struct requests *r)
{
	uint32_t i = r->list.count;

	while (i && requests_at(r, i - 1)->kind != REQUEST_REFUSED)
		i--;
	return i ? i - 1 : r->list.count;
}

struct walk {
	struct replay_pass pass;
	struct replay_refusal *out;
	uint32_t last;
	uint64_t recorded;
	bool counted; /* the request before was an event of a block */
};

static void compare(struct walk *w, const struct request *next)
{
	uint64_t error, now = w->pass.allocator.reserved;

	if (!w->counted)
		return;
	if (next->kind == REQUEST_AFTER)
		w->recorded = (uint64_t)next->value * UNIT;
	error = arithmetic_beyond(now, w->recorded) + arithmetic_beyond(w->recorded, now);
	w->out->agrees = !error;
	w->out->error = arithmetic_most(error, w->out->error);
}

/* Performs request i. True: the end, because later requests are unknown or do not matter. */
static bool ask(struct walk *w, uint32_t i)
{
	struct allocator *a = &w->pass.allocator;
	struct request q = *requests_at(w->pass.requests, i);
	bool refused = q.kind == REQUEST_REFUSED, last = i == w->last, granted;
	bool asks = refused || q.kind == REQUEST_TAKE;
	uint64_t ooms = a->ooms;

	q.kind = last ? REQUEST_TAKE : q.kind;
	w->counted = pass_do(&w->pass, &q);
	granted = a->ooms == ooms;
	if (!asks || (!last && granted != refused))
		return false;
	if (granted && last)
		*w->out =
			(struct replay_refusal){ REFUSAL_FITS, to_spare(a), w->out->error, false };
	if (!granted) {
		compare(w, i + 1 < w->pass.requests->list.count
				   ? requests_at(w->pass.requests, i + 1)
				   : &q);
		w->out->what = last ? REFUSAL_STAYS : REFUSAL_EARLIER;
		w->out->bytes = lacking(&w->pass, &q);
	}
	return true;
}

void replay_refusal(struct replay_refusal *out, const struct replay_trial *t,
		    const struct alloc_settings *s)
{
	struct walk w = { .out = out, .last = last_refused(t->requests) };

	*out = (struct replay_refusal){ .what = REFUSAL_UNKNOWN };
	pass_init(&w.pass, t->requests, s, &t->limits);
	for (uint32_t i = 0; i < t->requests->list.count; i++) {
		compare(&w, requests_at(t->requests, i));
		if (ask(&w, i))
			break;
	}
	pass_free(&w.pass);
}
