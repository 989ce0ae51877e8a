/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the peak of a running program has settled, by what it has recorded so far. */
#ifndef VIEWER_TRIAL_WATCH_H
#define VIEWER_TRIAL_WATCH_H

#include "../moments/following.h"
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
};

void trial_watch_begin(struct trial_watch *w, const struct trial *t, const struct plan *p);
bool trial_watch_settled(struct trial_watch *w);
void trial_watch_end(struct trial_watch *w);

#endif
