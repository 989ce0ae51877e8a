/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs Python source in a process that was started without us. A thread of the target is stopped
 * for well under a millisecond, at a moment when it holds no lock of the C library, and starts
 * another thread there; that one waits for the interpreter's lock as any thread does, runs the
 * source, and ends. All others run on meanwhile.
 */
#pragma once

#include <sys/types.h>

#include "../base/usual.h"

enum { ATTACH_WHY = 320 };

/* Whether this process may be looked into; else `why` is the sentence. */
bool attach_allowed(pid_t pid, char why[ATTACH_WHY]);

bool attach_lives(pid_t pid);

/* Starts the thread; `seconds`: how long to look for a moment to do so. */
bool attach_start(pid_t pid, const char *source, double seconds, char why[ATTACH_WHY]);

/*
 * The folder in which a target leaves its snapshot, and the source that it runs for that
 * (attach.py). The folder is for the target's user alone; once it is gone the target stops.
 */

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
