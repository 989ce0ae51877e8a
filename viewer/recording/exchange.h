/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder in which a target leaves its snapshot, and the source that it runs for that
 * (attach.py). The folder is for the target's user alone; once it is gone the target stops.
 */
#pragma once

#include "attach.h"

struct exchange {
	pid_t pid;
	double seconds;	       /* of history; 0 = the snapshot alone */
	double patience;       /* seconds without an answer before the target is left alone */
	char folder[PATH_MAX]; /* as we see it, */
	const char *inside;    /* and as the target does */
	char snapshot[PATH_MAX + 16];
	bool recorded; /* its history was switched on for us */
};

/* Starts the source in the target and waits until the snapshot is there. `stop`, if not NULL, is
 * asked all the time: true ends a recording
 * early, and the waiting for anything else. */
bool exchange_run(struct exchange *x, bool (*stop)(void), char why[ATTACH_WHY]);
void exchange_end(struct exchange *x); /* removes the folder */
