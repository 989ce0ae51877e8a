/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs Python source in a process that is already running. One thread of the target is stopped for
 * well under a millisecond, at a moment when it holds no lock of the C library, and starts another
 * thread there. The new thread waits for the interpreter's lock as any thread does, runs the
 * source, and ends. All other threads run on meanwhile.
 */
#pragma once

#include <sys/types.h>

#include "../base/usual.h"

enum { ATTACH_WHY = 320 };

/* Whether this process can be traced; if not, `why` gets the reason. */
bool attach_allowed(pid_t pid, char why[ATTACH_WHY]);

bool attach_lives(pid_t pid);

/* Starts a thread that runs the source. Looks for a suitable moment for up to `seconds`. False:
 * `why` gets the reason. */
bool attach_start(pid_t pid, const char *source, double seconds, char why[ATTACH_WHY]);

/*
 * A folder for the target's snapshot, and the source that writes it (attach.py). Only the target's
 * user can read the folder. The source stops when the folder is gone.
 */

struct exchange {
	pid_t pid;
	double seconds;	       /* of history; 0 = the snapshot alone */
	double patience;       /* seconds without an answer before the target is left alone */
	char folder[PATH_MAX]; /* its path in this process */
	const char *inside;    /* its path in the target */
	char snapshot[PATH_MAX + 16];
	bool recorded; /* the target records its history for this command */
};

/* Starts the source in the target and waits until the snapshot is complete. `stop`, if not NULL, is
 * called again and again: true ends a recording of history early, or any other wait. False: `why`
 * gets the reason. */
bool exchange_run(struct exchange *x, bool (*stop)(void), char why[ATTACH_WHY]);
void exchange_end(struct exchange *x); /* removes the folder */
