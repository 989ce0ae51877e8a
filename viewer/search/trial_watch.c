/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the peak of a running program has settled. A program that trains: so many of its steps
 * have ended after the first one, and the latest did not raise the peak (where it still does after
 * some more, that is left at that). Any other: its peak is as old as all that was before it, and
 * at least QUIET. Of several processes each that trains has to get there.
 */
#include "trial_watch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/now.h"
#include "../base/need.h"

#define QUIET 20000 /* ms */
#define MORE  8	    /* steps to wait for a peak that rises */

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p)
{
	*w = (struct trial_watch){ .trial = t, .plan = p, .start_ms = now_ms() };
}

static bool is_watched(const struct trial_watch *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (!strcmp(w->items[i].path, path))
			return true;
	return false;
}

/* One that can be read, so that following it has nothing to say. */
static bool can_be_read(const char *path)
{
	int err;
	struct gmt_reader *r = gmt_reader_open(path, &err);
	bool some = r && gmt_reader_info(r)->last_seq > 0;

	gmt_reader_close(r);
	return some;
}

static void find_new(struct trial_watch *w)
{
	char **paths = trial_recordings(w->trial, w->plan);

	for (char **p = paths; *p && w->count < WATCH_RECORDINGS; p++) {
		if (is_watched(w, *p) || !can_be_read(*p))
			continue;
		w->items[w->count].path = need_copy(*p, strlen(*p));
		w->items[w->count].follow =
			(struct following){ .path = w->items[w->count].path, .device = -1 };
		w->count++;
	}
	vary_command_free(paths);
}

static bool has_steps(const struct steps *s)
{
	return s->basis == STEPS_OPTIMIZER || s->basis == STEPS_PROFILER ||
	       s->basis == STEPS_BACKWARD;
}

/* Steps that ended, and whether the last of them was higher than all before it. */
static size_t ended_steps(const struct steps *s, bool *rises)
{
	uint64_t before = 0, last = 0;
	size_t n = 0, end = s->count - (s->tail ? 1 : 0);

	for (size_t i = 1; i < end; i++) {
		if (!s->items[i].ended)
			continue;
		before = last > before ? last : before;
		last = s->items[i].extent.peak;
		n++;
	}
	*rises = n > 1 && last > before;
	return n;
}

static bool trained_enough(const struct trial_watch *w, const struct steps *s)
{
	bool rises;
	size_t n = ended_steps(s, &rises), wanted = (size_t)w->plan->steps + 1;

	return n >= wanted && (!rises || n >= wanted + MORE);
}

/* Of a program without such steps. */
static bool is_quiet(struct trial_watch *w, size_t i)
{
	const struct timeline *t = &w->items[i].follow.timeline;
	uint64_t peak = model_curve(&t->model.devices[t->device])->peak.bytes;
	uint64_t now = now_ms();

	if (peak != w->items[i].peak) {
		w->items[i].peak = peak;
		w->items[i].since_ms = now;
	}
	return now - w->items[i].since_ms >= QUIET &&
	       now - w->items[i].since_ms >= w->items[i].since_ms - w->start_ms;
}

bool trial_watch_settled(struct trial_watch *w)
{
	size_t ranks = (size_t)world_runs(&w->plan->world);
	size_t training = 0, trained = 0, others = 0, quiet = 0;

	find_new(w);
	for (size_t i = 0; i < w->count; i++) {
		if (!can_be_read(w->items[i].path) || following_look(&w->items[i].follow))
			continue;
		if (has_steps(&w->items[i].follow.timeline.steps)) {
			training++;
			trained += trained_enough(w, &w->items[i].follow.timeline.steps);
		} else {
			others++;
			quiet += is_quiet(w, i);
		}
	}
	if (training)
		return training == trained && training >= ranks;
	return others && quiet == others;
}

void trial_watch_end(struct trial_watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		following_close(&w->items[i].follow);
		free(w->items[i].path);
	}
	w->count = 0;
}
