/* SPDX-License-Identifier: Apache-2.0 */
/* The recording that a running process writes, found by what it has mapped. */
#pragma once

#include "recording.h"

/* what: a file, or a process id if there is no file of that name. Fills path. 0, or a sentence was
 * said and the exit code. */
int running_find(const char *what, char path[PATH_MAX], long *pid);
bool running_lives(long pid);
bool running_recording(long pid, char path[PATH_MAX]); /* that it writes; false: none */
bool running_maps(long pid, const char *recording);    /* does the process write it? */

/* What its blocks say; false, and zeros, if it cannot be read. */
bool running_info(const char *path, struct gmt_reader_info *info);
long running_writer(const char *path); /* the process that writes there; 0: none */

/* 0 if no process writes a recording there; else a sentence was said and the exit code. */
int running_refuse(const char *path);

/* Whether the process that writes this recording still does. */
bool running_writes(const struct recording *r);

/* How much of a run its recording has, and the sentence that says so. */

enum recording_state {
	STATE_WHOLE,
	STATE_DAMAGED, /* parts of the file cannot be read */
	STATE_RUNNING, /* the process still writes it */
	STATE_NO_END,  /* the program was killed or crashed, or the file was cut */
	STATE_A_PART,  /* a whole file, and not of the whole run: a snapshot, or recovered */
	STATE_SEARCH,  /* the same: fit, bisect or advise ended the run, which they had started */
};

/* Of a recording of which events were not passed on it is not known whether it is a part. */
enum recording_state recording_state(const struct recording *r);

/* A whole sentence that qualifies the figures of an answer; NULL for a whole recording. */
const char *recording_state_sentence(enum recording_state state);
