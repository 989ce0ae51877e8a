/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a run do: whether they work on the device, use the processor, or do nothing
 * at all; and what they wait for then.
 */
#ifndef VIEWER_ACTIVITY_H
#define VIEWER_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACTIVITY_DEVICE 16

struct activity {
	pid_t group;		     /* of the processes that were started */
	const char *usage;	     /* the file in which the device counts its work */
	pid_t pids[ACTIVITY_DEVICE]; /* those that use the device, the latest last */
	size_t pid_count;
	uint64_t look_ms;     /* of the last look */
	uint64_t worked_ms;   /* when something was last done on the device, or recorded */
	uint64_t moved_ms;    /* when a process last did anything */
	uint64_t work, ticks; /* of the device; of the processor, at moved_ms */
	uint64_t switches;    /* how often the latest one's main thread has waited, at moved_ms */
	uint64_t below;	      /* processor time of what is below those that use the device */
	/* Seconds, or more, in which the device was given a fair amount of work, and none of the
	 * processes below used the processor; when the next one began, and the work until then. */
	uint64_t seconds, second_ms, second_work;
};

void activity_begin(struct activity *a, pid_t group, const char *usage);
void activity_uses_device(struct activity *a, pid_t pid);
/* `events`: how many are recorded. Looks once a second. */
void activity_look(struct activity *a, uint64_t events);

/* While nothing is done: it sleeps for long, as it was written to; it listens at a port, so that
 * it may wait for requests; what its main thread waits for. */
bool activity_sleeps(const struct activity *a);
bool activity_listens(const struct activity *a);
const char *activity_waits_for(const struct activity *a);

/* Ends all that came of this process and is still there. */
void activity_end_all(void);

#endif
