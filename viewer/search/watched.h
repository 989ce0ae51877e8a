/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a running program, by its recording: the units for stable.h. The units of a
 * training program are its steps, and seconds of work if it goes on to something else after them.
 * The units of any other program are seconds of work. A program that has begun to train, or has an
 * optimizer, has no units before its first optimizer step.
 */
#ifndef VIEWER_WATCHED_H
#define VIEWER_WATCHED_H

#include "../moments/following.h"
#include "stable.h"

struct watched {
	struct following follow;
	char *path;
	/* Steps that ended: their number, when it last changed, and the device memory outside the
	 * framework when each was first seen. */
	size_t steps, others_room;
	uint64_t steps_ms, *others;
	/* Seconds of device work since then. */
	struct stable_unit *seconds;
	size_t second_count, second_room, refused_second;
	uint32_t marks;		 /* marks that were searched for failed allocations */
	uint64_t refused_seq;	 /* the latest of these */
	uint64_t peak, since_ms; /* its peak, and when it was first seen */
};

struct watched_wish {
	struct stable_wish steps, seconds;
	uint64_t room; /* room above the peak, in bytes */
	bool last; /* the run ends now: backward passes count as steps if there is no optimizer */
};

struct watched_course {
	struct stable stable;
	bool steps, begun; /* units are steps; begun: but no optimizer step has ended */
	size_t units;
};

/* Called after each look; `others`: device memory in use outside the framework. */
void watched_take(struct watched *w, uint64_t others);
void watched_second(struct watched *w, uint64_t others); /* one second of work */
void watched_free(struct watched *w);

struct watched_course watched_judge(const struct watched *w, const struct watched_wish *wish);
uint64_t watched_peak(const struct watched *w);
uint64_t watched_reserved(const struct watched *w); /* reserved by its framework, at most */
bool watched_trains(const struct watched *w);	    /* an optimizer step has ended */

/* The steps of a whole recording, by the same rule. */
struct stable watched_steps(const struct steps *s, uint64_t room);

#endif
