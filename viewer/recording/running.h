/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the recording that a running process writes, by its mapped files. */
#pragma once

#include "recording.h"

/* what: a file, or a process id if there is no file of that name. Fills path and *pid (0 for a
 * file). Returns 0, or an exit code after an error message. */
int running_find(const char *what, char path[PATH_MAX], long *pid);
bool running_lives(long pid);
bool running_recording(long pid, char path[PATH_MAX]); /* false: it writes none */
bool running_maps(long pid, const char *recording);    /* whether the process writes it */

/* Reads a recording's totals and its process; false, and zeros, if it cannot be read. */
bool running_info(const char *path, struct gmt_reader_info *info);
long running_writer(const char *path); /* the process that writes it, 0 = none */

/* 0 if no process writes a recording there, else an exit code after an error message. */
int running_refuse(const char *path);

/* Whether a process is still writing this recording. */
bool running_writes(const struct recording *r);

/* How much of a run its recording covers, and a sentence about that. */

enum recording_state {
	STATE_WHOLE,
	STATE_DAMAGED, /* parts of the file cannot be read */
	STATE_RUNNING, /* the process still writes it */
	STATE_NO_END,  /* the program was killed or crashed, or the file was cut */
	STATE_A_PART,  /* a complete file of a part of the run: a snapshot, or recovered */
	STATE_SEARCH,  /* the same: fit, bisect or advise started and ended the run */
};

/* Finds STATE_A_PART and STATE_SEARCH only after all events were passed on (read_through). */
enum recording_state recording_state(const struct recording *r);

/* A whole sentence that qualifies the figures of an answer; NULL for a whole recording. */
const char *recording_state_sentence(enum recording_state state);
