/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for steps and for failed allocations. */
#include "../oom/oom.h"
#include "lake_cells.h"
#include "lake_recording.h"

void lake_step_rows(struct lake_rows *x)
{
	const struct steps *steps = &x->timeline->steps;
	size_t count = steps_number(steps);
	struct instant at;

	for (size_t i = 1; i <= count; i++) {
		const struct step *s = &steps->items[i];

		instant_of_peak(&at, x->timeline, &s->extent);
		put_int(x->w, steps, step, i);
		put_int(x->w, steps, begin_ns, s->extent.first_ns);
		put_int(x->w, steps, end_ns, s->extent.last_ns);
		put_int(x->w, steps, begin_bytes, s->extent.begin_bytes);
		put_int(x->w, steps, peak_bytes, s->extent.peak);
		put_int(x->w, steps, peak_ns, s->extent.peak_ns);
		put_text(x->w, steps, peak_phase, phase_name(at.phase));
		put_int(x->w, steps, end_bytes, s->extent.end_bytes);
		put_int(x->w, steps, growth_bytes, s->extent.growth);
		put_flag(x->w, steps, ended, s->ended);
		lake_row(x->w, LAKE_steps);
	}
}

/* Cause of the last failed allocation, as `oom` reports it. */
static void cause_cells(struct lake_rows *x, const struct refusal *last)
{
	struct oom o = { 0 };
	struct oom_answer a;

	oom_look(&o, x->timeline, last);
	oom_answer(&a, &o);
	put_text(x->w, refusals, cause, oom_cause_name(a.cause));
	put_text(x->w, refusals, text, a.why);
	put_int(x->w, refusals, asked_bytes, o.asked);
	if (o.room.sampled)
		put_int(x->w, refusals, free_bytes, o.room.free);
	put_int(x->w, refusals, cached_bytes, o.room.cached);
	put_int(x->w, refusals, largest_hole_bytes, o.room.hole);
	if (a.count) {
		put_text(x->w, refusals, remedy, a.remedies[0].what);
		put_int(x->w, refusals, remedy_bytes, a.remedies[0].saves);
	}
	oom_close(&o);
}

static void refusal_row(struct lake_rows *x, const struct lives_mark *e, uint64_t nth,
			const struct refusal *last)
{
	struct timeline *t = x->timeline;
	const struct block b = {
		.device = e->device, .seq = e->seq, .stack = e->stack, .name = e->name
	};
	struct owner owner = owners_find(&t->owners, &b);
	size_t item = steps_at(&t->steps, e->seq);
	const struct span *span = steps_span(&t->steps, &t->model.spans, e->seq);
	bool tail = t->steps.tail && item == t->steps.count - 1;

	put_int(x->w, refusals, nth, nth);
	put_int(x->w, refusals, device, e->device);
	put_int(x->w, refusals, time_ns, e->ns);
	if (x->recording->info->realtime_minus_monotonic_ns)
		put_int(x->w, refusals, time,
			((int64_t)e->ns + x->recording->info->realtime_minus_monotonic_ns) / 1000);
	put_int(x->w, refusals, step, tail ? 0 : item);
	if (span)
		put_text(x->w, refusals, phase, phase_name(span->phase));
	put_int(x->w, refusals, block_bytes, e->size);
	put_owner(x->w, refusals, &owner, lake_module(x, e->stack));
	if (e->seq == last->event.seq)
		cause_cells(x, last);
	lake_row(x->w, LAKE_refusals);
}

void lake_refusal_rows(struct lake_rows *x)
{
	struct timeline *t = x->timeline;
	const struct row_store *marks = &t->model.lives.marks;
	bool reported = refusals_reported(&t->model.lives);
	struct refusal last;
	uint64_t nth = 0;
	int device = -1;

	if (!x->refusals || !refusals_find(&last, &t->model.lives, 0))
		return;
	x->out_of_memory = !last.later_allocs;
	for (uint32_t i = 0; i < marks->count; i++) {
		const struct lives_mark *e = rows_at(marks, i);

		if (!refusals_is_one(e, reported) || e->device < 0)
			continue;
		if (e->device != device) {
			device = e->device;
			timeline_look(t, device);
		}
		refusal_row(x, e, ++nth, &last);
	}
}
