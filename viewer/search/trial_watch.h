/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the peak of a running program has settled, or it hangs, by what it has recorded so far
 * and by what its processes do. */
#ifndef VIEWER_TRIAL_WATCH_H
#define VIEWER_TRIAL_WATCH_H

#include "../moments/following.h"
#include "activity.h"
#include "trial.h"

#define WATCH_RECORDINGS 16

struct trial_watch {
	const struct trial *trial;
	const struct plan *plan;
	struct {
		struct following follow;
		char *path;
		uint64_t peak, since_ms; /* its peak, and when that was first seen */
	} items[WATCH_RECORDINGS];
	size_t count;
	uint64_t start_ms;
	struct activity activity;
	char usage[PATH_MAX];
};

enum watch_says { WATCH_GOES_ON, WATCH_SETTLED, WATCH_HANGS, WATCH_LATE };

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p,
		       pid_t group);
/* Of a program that hangs, of one that has settled and does nothing, and of one whose time is up,
 * it says why. */
enum watch_says trial_watch_look(struct trial_watch *w, struct trial_end *why);
/* For how long it has run, and what is waited for. */
void trial_watch_doing(const struct trial_watch *w, char *text, size_t room);
void trial_watch_end(struct trial_watch *w);
/* Have so many steps of one process ended that its peak has settled? */
bool trial_watch_trained(const struct steps *s, const struct plan *p, bool *trains);

#endif
