/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the peak of a running program has settled. A program that trains: so many of its steps
 * have ended after the first one, and the latest did not raise the peak (where it still does after
 * some more, that is left at that). Any other: its peak is as old as all that was before it, and
 * at least QUIET, and it went on working on the device meanwhile; of one that has only done
 * backward passes, QUIET_BACKWARD. Of several processes each that trains has to get there.
 *
 * Where no process does anything for QUIET, the program hangs: unless one of them sleeps, as it was
 * written to, or listens at a port and so may wait for requests. One that uses the processor, and
 * not the device, prepares something, for BUSY at most unless another time was given.
 */
#include "trial_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/now.h"
#include "../base/need.h"

#define QUIET	       20000  /* ms */
#define QUIET_BACKWARD 60000  /* of a program that may still come to its optimizer */
#define BUSY	       600000 /* ms */
#define MORE	       8      /* steps to wait for a peak that rises */

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p,
		       pid_t group)
{
	*w = (struct trial_watch){ .trial = t, .plan = p, .start_ms = now_ms() };
	trial_path(t, p, ".usage", w->usage);
	activity_begin(&w->activity, group, w->usage);
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

/* Backward passes alone are no steps yet: gradients of many may be added up before the optimizer
 * makes its state. */
static bool has_steps(const struct steps *s)
{
	return s->basis == STEPS_OPTIMIZER || s->basis == STEPS_PROFILER;
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

bool trial_watch_trained(const struct steps *s, const struct plan *p, bool *trains)
{
	bool rises;
	size_t n = ended_steps(s, &rises), wanted = (size_t)p->steps + 1;

	*trains = has_steps(s);
	return *trains && n >= wanted && (!rises || n >= wanted + MORE);
}

/* Of a program without such steps. */
static bool is_quiet(struct trial_watch *w, size_t i)
{
	const struct timeline *t = &w->items[i].follow.timeline;
	uint64_t peak = model_curve(&t->model.devices[t->device])->peak.bytes;
	uint64_t now = now_ms(), least = t->steps.basis == STEPS_BACKWARD ? QUIET_BACKWARD : QUIET;

	if (peak != w->items[i].peak) {
		w->items[i].peak = peak;
		w->items[i].since_ms = now;
	}
	return now - w->items[i].since_ms >= least &&
	       now - w->items[i].since_ms >= w->items[i].since_ms - w->start_ms;
}

/* Has the peak of all that runs settled, if it goes on like this? */
static bool has_settled(struct trial_watch *w, bool *trains)
{
	size_t ranks = (size_t)world_runs(&w->plan->world);
	size_t training = 0, trained = 0, others = 0, quiet = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct timeline *t = &w->items[i].follow.timeline;
		bool trains_too, enough;

		if (!w->items[i].follow.open)
			continue;
		enough = trial_watch_trained(&t->steps, w->plan, &trains_too);
		if (trains_too) {
			training++;
			trained += enough;
		} else {
			others++;
			quiet += is_quiet(w, i);
		}
	}
	*trains = training;
	if (training)
		return training == trained && training >= ranks;
	return others && quiet == others;
}

static void read_on(struct trial_watch *w)
{
	uint64_t events = 0;

	find_new(w);
	for (size_t i = 0; i < w->count; i++) {
		if (!can_be_read(w->items[i].path) || following_look(&w->items[i].follow))
			continue;
		w->activity.pid = (pid_t)w->items[i].follow.recording.info->pid;
		events += w->items[i].follow.seq;
	}
	activity_look(&w->activity, events);
}

/* The fewest of those that train. */
static size_t fewest_steps(const struct trial_watch *w, size_t *training)
{
	size_t fewest = 0, n;
	bool rises;

	*training = 0;
	for (size_t i = 0; i < w->count; i++) {
		const struct steps *s = &w->items[i].follow.timeline.steps;

		if (!w->items[i].follow.open || !has_steps(s))
			continue;
		n = ended_steps(s, &rises);
		fewest = *training ? (n < fewest ? n : fewest) : n;
		++*training;
	}
	return fewest;
}

/* "no training step has ended", without an end. */
static void waits_for(const struct trial_watch *w, char *text, size_t room)
{
	size_t training, n = fewest_steps(w, &training), wanted = (size_t)w->plan->steps + 1;
	long ranks = world_runs(&w->plan->world);
	bool quiet = false;

	for (size_t i = 0; i < w->count; i++)
		quiet |= w->items[i].follow.open && w->items[i].since_ms;
	if (!w->count)
		snprintf(text, room, "nothing was recorded on the device");
	else if (training && (long)training < ranks)
		snprintf(text, room, "%zu of %ld ranks have begun to train", training, ranks);
	else if (training && n < wanted)
		snprintf(text, room, "%zu of %zu training steps have ended", n, wanted);
	else if (training)
		snprintf(text, room, "each step raised the peak, %zu have ended", n);
	else
		snprintf(text, room, "no training step has ended%s",
			 quiet ? ", and the peak has not been the same for long enough" : "");
}

void trial_watch_doing(const struct trial_watch *w, char *text, size_t room)
{
	char what[200];

	waits_for(w, what, sizeof(what));
	snprintf(text, room, "%s, %" PRIu64 " s: %s", w->trial->card->name,
		 (now_ms() - w->start_ms) / 1000, what);
}

/* Its time is up. After a whole step behind the first the figures are those of a step. */
static enum watch_says is_late(const struct trial_watch *w, struct trial_end *why)
{
	size_t training, n = fewest_steps(w, &training);
	char what[200];

	waits_for(w, what, sizeof(what));
	why->partly = n > 1 && (long)training >= world_runs(&w->plan->world);
	snprintf(why->late, sizeof(why->late),
		 why->partly ? "After %ld s (--max-time) it was ended before its peak had settled: "
			       "%s. The figures are a lower bound."
			     : "after %ld s (--max-time) its peak had not settled: %s; give it "
			       "more time, or less work in a step.",
		 w->plan->seconds, what);
	return WATCH_LATE;
}

static enum watch_says hangs(const struct trial_watch *w, struct trial_end *why, bool trains)
{
	const struct activity *a = &w->activity;
	char steps[64] = "";
	size_t training;

	if (trains)
		snprintf(steps, sizeof(steps), " after %zu steps", fewest_steps(w, &training));
	snprintf(why->hangs, sizeof(why->hangs),
		 "for %" PRIu64 " s%s it did nothing on the device and used no processor time; its "
		 "main thread waits for %s.",
		 (now_ms() - a->moved_ms) / 1000, steps, activity_waits_for(a));
	return WATCH_HANGS;
}

/* Nothing was done for QUIET, by any process. */
static enum watch_says is_still(const struct trial_watch *w, struct trial_end *why, bool trains)
{
	const struct activity *a = &w->activity;
	bool sleeps = activity_sleeps(a);

	if (!sleeps && (!w->count || w->plan->world.size || !activity_listens(a)))
		return hangs(w, why, trains);
	if (!w->count || trains)
		return WATCH_GOES_ON;
	snprintf(why->idle, sizeof(why->idle),
		 sleeps ? "It sleeps, and does nothing more: what it does later is not in the "
			  "figures."
			: "It listens at a port and does nothing: if it waits for requests, what "
			  "these take is not in the figures.");
	return WATCH_SETTLED;
}

enum watch_says trial_watch_look(struct trial_watch *w, struct trial_end *why)
{
	const struct activity *a = &w->activity;
	bool settled, trains;

	read_on(w);
	settled = has_settled(w, &trains);
	if (settled && trains)
		return WATCH_SETTLED;
	if (w->plan->seconds && now_ms() - w->start_ms >= (uint64_t)w->plan->seconds * 1000)
		return is_late(w, why);
	if (a->look_ms - a->moved_ms >= QUIET)
		return is_still(w, why, trains);
	if (!w->plan->patient && a->look_ms - a->worked_ms >= BUSY) {
		snprintf(why->hangs, sizeof(why->hangs),
			 "for %d minutes it used the processor and did nothing on the device; if "
			 "it prepares its data, give it more time (fit --max-time).",
			 BUSY / 60000);
		return WATCH_HANGS;
	}
	return settled && a->look_ms - a->worked_ms < QUIET / 2 ? WATCH_SETTLED : WATCH_GOES_ON;
}

void trial_watch_end(struct trial_watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		following_close(&w->items[i].follow);
		free(w->items[i].path);
	}
	w->count = 0;
}
