/* SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../base/now.h"
#include "../moments/refusals.h"

/* Recorded as soon as an optimizer is made. */
#define OPTIMIZER "torch.optimizer"

#define ANY_BACKWARD 10 /* times as long if passes are kept for a backward pass that never came */

static const struct model *model_of(const struct watched *w)
{
	return &w->follow.timeline.model;
}

uint64_t watched_peak(const struct watched *w)
{
	return model_curve(&model_of(w)->devices[w->follow.timeline.device])->peak.bytes;
}

uint64_t watched_reserved(const struct watched *w)
{
	const struct model_device *d = &model_of(w)->devices[w->follow.timeline.device];
	uint64_t bytes = d->framework ? d->reserved.peak.bytes : d->driver.peak.bytes;

	return bytes > watched_peak(w) ? bytes : watched_peak(w);
}

/* ---- steps ---- */

/* Backward passes alone do not count as steps, because gradients of many may be accumulated before
 * the optimizer makes its state. */
static bool has_steps(const struct steps *s, const struct spans *spans)
{
	if (s->basis == STEPS_PROFILER && spans->trains)
		for (size_t i = 1; i < s->count; i++)
			if (step_has(&s->items[i], PHASE_OPTIMIZER))
				return true;
	return s->basis == STEPS_OPTIMIZER || (s->basis == STEPS_PROFILER && !spans->trains);
}

static size_t end_of(const struct steps *s)
{
	return s->count - (s->tail ? 1 : 0);
}

static double seconds_of(const struct steps *s, size_t i)
{
	const struct extent *e = &s->items[i].extent;
	uint64_t until = i + 1 < s->count ? s->items[i + 1].extent.first_ns : e->last_ns;

	return until > e->first_ns ? (double)(until - e->first_ns) / 1e9 : 0;
}

/* Units of the steps that ended, and one more if the events after them raised the peak; freed by
 * the caller. *since: how many began up to before_seq. */
static struct stable_unit *units_of(const struct steps *s, const uint64_t *others, size_t known,
				    uint64_t before_seq, size_t *count, size_t *since)
{
	struct stable_unit *units = need_new((s->count + 1) * sizeof(*units));
	uint64_t most = 0, open = 0;
	size_t n = 0;

	*since = 0;
	for (size_t i = 1; i < s->count; i++) {
		const struct step *step = &s->items[i];
		uint64_t peak = step->extent.peak;

		if (i >= end_of(s) || !step->ended) {
			open = peak > open ? peak : open;
			continue;
		}
		peak += n < known ? others[n] : known ? others[known - 1] : 0;
		most = peak > most ? peak : most;
		units[n++] = (struct stable_unit){ peak, seconds_of(s, i) };
		if (step->extent.first_seq <= before_seq)
			*since = n;
	}
	*count = n;
	if (n && open > most)
		units[(*count)++] = (struct stable_unit){ open, units[n - 1].seconds };
	return units;
}

static size_t ended_steps(const struct steps *s)
{
	size_t n = 0;

	for (size_t i = 1; i < end_of(s); i++)
		n += s->items[i].ended;
	return n;
}

struct stable watched_steps(const struct steps *s, uint64_t room)
{
	static const struct stable_wish none = { 1, 0 };
	size_t count, since;
	struct stable_unit *units = units_of(s, NULL, 0, 0, &count, &since);
	struct stable out = stable_judge(units, count, since, room, &none);

	free(units);
	return out;
}

bool watched_trains(const struct watched *w)
{
	return w->steps;
}

/* ---- as it goes on ---- */

static void look_for_refusals(struct watched *w)
{
	const struct row_store *marks = &model_of(w)->lives.marks;

	if (w->marks > marks->count)
		w->marks = 0; /* everything was read again */
	for (; w->marks < marks->count; w->marks++) {
		const struct lives_mark *m = rows_at(marks, w->marks);

		if (!refusals_is_one(m, false) || m->seq <= w->refused_seq)
			continue;
		w->refused_seq = m->seq;
		w->refused_second = w->second_count;
	}
}

void watched_take(struct watched *w, uint64_t others)
{
	const struct steps *s = &w->follow.timeline.steps;
	size_t steps = has_steps(s, &model_of(w)->spans) ? ended_steps(s) : 0;

	look_for_refusals(w);
	if (watched_peak(w) != w->peak)
		w->since_ms = now_ms();
	w->peak = watched_peak(w);
	if (steps == w->steps)
		return;
	for (size_t i = 0; i < w->steps && !w->others[i]; i++)
		w->others[i] = others; /* it was not known yet */
	while (w->steps < steps)
		*need_item(w->others, w->steps, w->others_room) = others;
	w->steps = steps;
	w->steps_ms = now_ms();
	w->second_count = w->refused_second = 0;
}

void watched_second(struct watched *w, uint64_t others)
{
	const struct stable_unit unit = { watched_peak(w) + others, 1 };

	*need_item(w->seconds, w->second_count, w->second_room) = unit;
}

void watched_free(struct watched *w)
{
	following_close(&w->follow);
	free(w->path);
	free(w->others);
	free(w->seconds);
}

/* ---- the decision ---- */

static bool has_optimizer(const struct watched *w)
{
	return defs_meta(&w->follow.recording.defs, OPTIMIZER).len;
}

static struct watched_course by_seconds(const struct watched *w, const struct watched_wish *wish)
{
	const struct model *m = model_of(w);
	struct stable_wish seconds = wish->seconds;
	struct watched_course c = { .units = w->second_count };

	c.begun = !w->steps && (m->spans.trains || has_optimizer(w));
	if (m->leaf_count && !w->steps)
		seconds.units *= ANY_BACKWARD;
	c.stable =
		stable_judge(w->seconds, w->second_count, w->refused_second, wish->room, &seconds);
	if (c.begun)
		c.stable.says = STABLE_NOT_YET;
	return c;
}

static struct watched_course by_steps(const struct watched *w, const struct watched_wish *wish)
{
	struct watched_course c = { .steps = true, .begun = !w->steps };
	double pause = (double)(now_ms() - w->steps_ms) / 1000;
	size_t since;
	struct stable_unit *units = units_of(&w->follow.timeline.steps, w->others, w->steps,
					     w->refused_seq, &c.units, &since);

	c.stable = stable_judge(units, c.units, since, wish->room, &wish->steps);
	free(units);
	/* The program is doing something else, and is left alone until its new course is stable
	 * too. */
	if (c.stable.says && !wish->last && stable_unusual(pause, c.stable.usual))
		c.stable.says = by_seconds(w, wish).stable.says;
	return c;
}

struct watched_course watched_judge(const struct watched *w, const struct watched_wish *wish)
{
	const struct steps *s = &w->follow.timeline.steps;
	bool backward = wish->last && s->basis == STEPS_BACKWARD && !has_optimizer(w);

	return watched_trains(w) || backward ? by_steps(w, wish) : by_seconds(w, wish);
}
