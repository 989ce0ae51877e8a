/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activity of a run's processes: whether they work on the device, use the processor, or are idle,
 * and what they wait for if they are idle.
 */
#ifndef VIEWER_ACTIVITY_H
#define VIEWER_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACTIVITY_DEVICE 16

struct activity {
	pid_t group;		     /* process group of the run */
	const char *usage;	     /* the file in which the device counts its work */
	pid_t pids[ACTIVITY_DEVICE]; /* processes that use the device, the latest last */
	size_t pid_count;
	uint64_t look_ms;     /* time of the last look */
	uint64_t worked_ms;   /* time of the last device work or recorded event */
	uint64_t moved_ms;    /* time at which a process was last active */
	uint64_t work, ticks; /* the device's work; processor ticks at moved_ms */
	uint64_t switches;    /* how often the latest one's main thread has waited, at moved_ms */
	uint64_t below;	      /* processor time of descendants of those that use the device */
	/* Periods of at least a second in which the device did a fair amount of work and no
	 * descendant used the processor; when the next period began, and the work until then. */
	uint64_t seconds, second_ms, second_work;
};

void activity_begin(struct activity *a, pid_t group, const char *usage);
void activity_uses_device(struct activity *a, pid_t pid);
/* `events`: how many are recorded. Looks once a second. */
void activity_look(struct activity *a, uint64_t events);

/* For an idle program: whether it sleeps for a long time on purpose, whether it listens at a port
 * and so may wait for requests, and what its main thread waits for. */
bool activity_sleeps(const struct activity *a);
bool activity_listens(const struct activity *a);
const char *activity_waits_for(const struct activity *a);

/* Ends all descendants of this process. */
void activity_end_all(void);

#endif
