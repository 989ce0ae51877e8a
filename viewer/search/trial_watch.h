/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the peak of a running program is stable, or the program hangs, by its recordings so far
 * and its processes' activity. */
#ifndef VIEWER_TRIAL_WATCH_H
#define VIEWER_TRIAL_WATCH_H

#include "activity.h"
#include "trial.h"
#include "watched.h"

#define WATCH_RECORDINGS 16

struct trial_watch {
	const struct trial *trial;
	const struct plan *plan;
	struct watched items[WATCH_RECORDINGS];
	size_t count;
	uint64_t start_ms;
	struct activity activity;
	/* Peak use of a device by its own count, now and a second or two ago; the time of that
	 * count; the part outside frameworks, and seconds of work until then. */
	uint64_t device, device_before, sample_ms, others, seconds;
	uint64_t new_ms; /* when a recording was found last */
	char usage[PATH_MAX];
};

enum watch_says { WATCH_GOES_ON, WATCH_STABLE, WATCH_RISES, WATCH_HANGS, WATCH_LATE };

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p,
		       pid_t group);
/* For a program that should be ended now it also says why. */
enum watch_says trial_watch_look(struct trial_watch *w, struct trial_end *why);
/* How long it has run, and what it waits for. */
void trial_watch_doing(const struct trial_watch *w, char *text, size_t room);
void trial_watch_end(struct trial_watch *w);

#endif
