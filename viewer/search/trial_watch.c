/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a running program when its peak is stable, or rises steadily (stable.h). If several
 * processes train, each of them has to get there. The peak of the others must be older than
 * everything before it. With --to-end nothing is ended.
 *
 * If no process does anything for QUIET, the program hangs, unless a process sleeps on purpose or
 * listens at a port and so may wait for requests. A process that uses the processor but not the
 * device is preparing something. It may do so for BUSY, or for the time given.
 */
#include "trial_watch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/human.h"
#include "../base/need.h"
#include "../base/now.h"

#define SECOND 1000   /* ms */
#define OLD    3000   /* ms, more than an older count is old */
#define QUIET  20000  /* ms */
#define BUSY   600000 /* ms */

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p,
		       pid_t group)
{
	*w = (struct trial_watch){ .trial = t, .plan = p, .start_ms = now_ms() };
	trial_path(t, p, ".usage", w->usage);
	activity_begin(&w->activity, group, w->usage);
}

/* ---- recordings ---- */

static bool is_watched(const struct trial_watch *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (!strcmp(w->items[i].path, path))
			return true;
	return false;
}

/* Whether the recording can be read already, so that following it prints no error. */
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
		struct watched *item = &w->items[w->count];

		if (is_watched(w, *p) || !can_be_read(*p))
			continue;
		w->new_ms = now_ms();
		item->path = need_copy(*p, strlen(*p));
		item->follow = (struct following){ .path = item->path, .device = -1 };
		w->count++;
	}
	vary_command_free(paths);
}

/* Reads the device's own count, once a second. */
static void sample_device(struct trial_watch *w)
{
	struct usage u = { 0 };
	uint64_t most = 0;
	int fd;

	if (now_ms() - w->sample_ms < SECOND)
		return;
	w->sample_ms = now_ms();
	fd = open(w->usage, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, &u, sizeof(u)) != sizeof(u))
		u = (struct usage){ 0 };
	if (fd >= 0)
		close(fd);
	for (int i = 0; i < USAGE_DEVICES; i++)
		most = u.peak[i] > most ? u.peak[i] : most;
	w->device_before = w->device;
	w->device = most;
}

/* Lower bound of device memory outside the frameworks. It uses an older device count, because
 * recordings lag behind, and only once all recordings of that time have been read. */
static void find_others(struct trial_watch *w)
{
	uint64_t reserved = 0, least;

	if (!w->count || now_ms() - w->new_ms < OLD)
		return;
	for (size_t i = 0; i < w->count; i++) {
		const struct watched *item = &w->items[i];
		uint64_t bytes = item->follow.open ? watched_reserved(item) : 0;

		reserved = bytes > reserved ? bytes : reserved;
	}
	least = w->device_before > reserved ? w->device_before - reserved : 0;
	w->others = least > w->others ? least : w->others;
}

static void read_on(struct trial_watch *w)
{
	uint64_t events = 0;

	find_new(w);
	sample_device(w);
	for (size_t i = 0; i < w->count; i++) {
		struct watched *item = &w->items[i];

		if (!can_be_read(item->path) || following_look(&item->follow))
			continue;
		activity_uses_device(&w->activity, (pid_t)item->follow.recording.info->pid);
		events += item->follow.seq;
	}
	activity_look(&w->activity, events);
	find_others(w);
	for (size_t i = 0; i < w->count; i++) {
		if (!w->items[i].follow.open)
			continue;
		watched_take(&w->items[i], w->others);
		for (uint64_t n = w->seconds; n < w->activity.seconds; n++)
			watched_second(&w->items[i], w->others);
	}
	w->seconds = w->activity.seconds;
}

/* ---- the decision ---- */

static uint64_t room_left(const struct trial_watch *w, const struct watched *item)
{
	uint64_t used = watched_peak(item) + w->others;

	return w->trial->card->memory > used ? w->trial->card->memory - used : 0;
}

/* last: the run ends now, however short it was. */
static struct watched_wish wish_of(const struct trial_watch *w, const struct watched *item,
				   bool last)
{
	const struct plan *p = w->plan;
	double look = p->look ? (double)p->look : QUIET / SECOND;

	return (struct watched_wish){
		.steps = { (size_t)p->steps, last ? 0 : (double)p->look },
		.seconds = { last ? QUIET / SECOND : (size_t)look, last ? 0 : look },
		.room = room_left(w, item),
		.last = last,
	};
}

/* For a process that does not train, beside processes that do. */
static bool is_old(const struct trial_watch *w, const struct watched *item)
{
	return now_ms() - item->since_ms >= item->since_ms - w->start_ms;
}

struct judgement {
	size_t training, trained, rising, others, quiet, old;
	bool begun;		    /* one has begun to train, and no step has ended */
	struct watched_course slow; /* of the process farthest from an answer */
};

static bool is_slower(const struct watched_course *a, const struct watched_course *b)
{
	return a->steps != b->steps ? a->steps : a->units < b->units;
}

static struct judgement judge(const struct trial_watch *w, bool last)
{
	struct judgement j = { 0 };

	for (size_t i = 0; i < w->count; i++) {
		const struct watched *item = &w->items[i];
		struct watched_wish wish;
		struct watched_course c;

		if (!item->follow.open)
			continue;
		wish = wish_of(w, item, last);
		c = watched_judge(item, &wish);
		j.training += c.steps;
		j.others += !c.steps;
		j.begun |= c.begun;
		j.rising += c.stable.says == STABLE_RISES;
		j.trained += c.steps && c.stable.says;
		j.quiet += !c.steps && c.stable.says;
		j.old += !c.steps && is_old(w, item);
		if (j.training + j.others == 1 || c.stable.each > j.slow.stable.each ||
		    (!j.slow.stable.each && is_slower(&c, &j.slow)))
			j.slow = c;
	}
	return j;
}

static enum stable_says says(const struct trial_watch *w, const struct judgement *j)
{
	size_t ranks = (size_t)world_runs(&w->plan->world);
	bool all = j->training ? j->trained == j->training && j->training >= ranks &&
					 j->old == j->others
			       : j->others && j->quiet == j->others && !j->begun;

	return !all ? STABLE_NOT_YET : j->rising ? STABLE_RISES : STABLE_YES;
}

/* ---- in words ---- */

/* "no training step has ended", without an end. */
static void waits_for(const struct trial_watch *w, const struct judgement *j, char *text,
		      size_t room)
{
	const struct watched_course *c = &j->slow;
	long ranks = world_runs(&w->plan->world);
	char n[HUMAN_MANY];

	if (!w->count)
		snprintf(text, room, "it has not used the device yet");
	else if (j->training && (long)j->training < ranks)
		snprintf(text, room, "%zu of %ld ranks have begun to train", j->training, ranks);
	else if (j->training)
		snprintf(text, room, "%s, and the peak last rose in step %zu",
			 human_many(n, c->units, "training step"), c->stable.risen);
	else if (j->begun)
		snprintf(text, room,
			 "it has begun to train, and no step of an optimizer has ended");
	else
		snprintf(text, room, "no training step, and %s of work on the device",
			 human_many(n, c->units, "second"));
}

void trial_watch_doing(const struct trial_watch *w, char *text, size_t room)
{
	struct judgement j = judge(w, false);
	char what[200];

	waits_for(w, &j, what, sizeof(what));
	snprintf(text, room, "%s, %" PRIu64 " s: %s", w->trial->card->name,
		 (now_ms() - w->start_ms) / 1000, what);
}

/* ---- its end ---- */

static enum watch_says end_by(const struct judgement *j, enum stable_says says,
			      struct trial_end *why)
{
	why->course = j->slow;
	why->stable = says;
	return says == STABLE_RISES ? WATCH_RISES : WATCH_STABLE;
}

/* The time limit is reached. After one whole step behind the first the figures describe a step. */
static enum watch_says is_late(const struct trial_watch *w, struct trial_end *why)
{
	struct judgement j = judge(w, true);
	char what[200];

	end_by(&j, says(w, &j), why);
	waits_for(w, &j, what, sizeof(what));
	why->partly = why->stable || (j.slow.steps && j.slow.units > 1 &&
				      (long)j.training >= world_runs(&w->plan->world));
	snprintf(why->late, sizeof(why->late),
		 why->stable ? "After %ld s (--max-time) it was ended: %s."
		 : why->partly
			 ? "After %ld s (--max-time) it was ended before its peak was stable: "
			   "%s. The figures are a lower bound."
			 : "after %ld s (--max-time) its peak was not stable: %s; give it "
			   "more time, or less work in a step.",
		 w->plan->seconds, what);
	return WATCH_LATE;
}

static enum watch_says hangs(const struct trial_watch *w, struct trial_end *why,
			     const struct judgement *j)
{
	const struct activity *a = &w->activity;
	char steps[64] = "";

	if (j->training)
		snprintf(steps, sizeof(steps), " after %zu steps", j->slow.units);
	snprintf(why->hangs, sizeof(why->hangs),
		 "for %" PRIu64 " s%s it did nothing on the device and used no processor time; its "
		 "main thread waits for %s.",
		 (now_ms() - a->moved_ms) / 1000, steps, activity_waits_for(a));
	return WATCH_HANGS;
}

/* No process did anything for QUIET. A program that waits is left alone for as long as it took to
 * get there. */
static enum watch_says is_still(const struct trial_watch *w, struct trial_end *why)
{
	const struct activity *a = &w->activity;
	uint64_t still = a->look_ms - a->moved_ms, look = (uint64_t)w->plan->look * SECOND;
	struct judgement j = judge(w, true);
	bool sleeps = activity_sleeps(a);

	if (!sleeps && (!w->count || w->plan->world.size || !activity_listens(a)))
		return hangs(w, why, &j);
	if (!w->count || j.begun || (j.training && says(w, &j) != STABLE_YES) || w->plan->to_end ||
	    still < look || still < a->moved_ms - w->start_ms)
		return WATCH_GOES_ON;
	snprintf(why->idle, sizeof(why->idle),
		 sleeps ? "It sleeps, and does nothing more: what it does later is not in the "
			  "figures."
			: "It listens at a port and does nothing: if it waits for requests, what "
			  "these take is not in the figures.");
	return end_by(&j, STABLE_YES, why);
}

enum watch_says trial_watch_look(struct trial_watch *w, struct trial_end *why)
{
	const struct activity *a = &w->activity;
	struct judgement j;

	read_on(w);
	j = judge(w, false);
	if (says(w, &j) && !w->plan->to_end)
		return end_by(&j, says(w, &j), why);
	if (w->plan->seconds && now_ms() - w->start_ms >= (uint64_t)w->plan->seconds * SECOND)
		return is_late(w, why);
	if (a->look_ms - a->moved_ms >= QUIET)
		return is_still(w, why);
	if (w->plan->patient || a->look_ms - a->worked_ms < BUSY)
		return WATCH_GOES_ON;
	snprintf(why->hangs, sizeof(why->hangs),
		 "for %d minutes it used the processor and did nothing on the device; if it "
		 "prepares its data, give it more time (fit --max-time).",
		 BUSY / 60000);
	return WATCH_HANGS;
}

void trial_watch_end(struct trial_watch *w)
{
	for (size_t i = 0; i < w->count; i++)
		watched_free(&w->items[i]);
	w->count = 0;
}
