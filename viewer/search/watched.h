/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a running program, by its recording: the units that stable.h wants. Of a program
 * that trains they are its steps, and seconds of work where it has gone on to something else after
 * them; of any other they are seconds of work. One that has begun to train, or has an optimizer,
 * has none before its first optimizer's step.
 */
#ifndef VIEWER_WATCHED_H
#define VIEWER_WATCHED_H

#include "../moments/following.h"
#include "stable.h"

struct watched {
	struct following follow;
	char *path;
	/* Steps that ended: how many, when that last changed, and how much of the device was in use
	 * besides the framework's memory when each was first seen. */
	size_t steps, others_room;
	uint64_t steps_ms, *others;
	/* Seconds in which the device was given work, since then. */
	struct stable_unit *seconds;
	size_t second_count, second_room, refused_second;
	uint32_t marks;		 /* that were looked at for refusals */
	uint64_t refused_seq;	 /* the latest of these */
	uint64_t peak, since_ms; /* its peak, and when that was first seen */
};

struct watched_wish {
	struct stable_wish steps, seconds;
	uint64_t room; /* bytes by which the peak may still rise */
	bool last; /* the run is ended now: backward passes are steps if there is no optimizer */
};

struct watched_course {
	struct stable stable;
	bool steps, begun; /* of steps; it has begun to train, and no optimizer's step has ended */
	size_t units;
};

/* After a look; `others`: bytes of the device that are in use besides the framework's. */
void watched_take(struct watched *w, uint64_t others);
void watched_second(struct watched *w, uint64_t others); /* a second of work */
void watched_free(struct watched *w);

struct watched_course watched_judge(const struct watched *w, const struct watched_wish *wish);
uint64_t watched_peak(const struct watched *w);
uint64_t watched_reserved(const struct watched *w); /* by its framework, at most */
bool watched_trains(const struct watched *w);	    /* an optimizer's step has ended */

/* The steps of a whole recording by the same rule. */
struct stable watched_steps(const struct steps *s, uint64_t room);

#endif
