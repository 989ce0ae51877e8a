/* SPDX-License-Identifier: Apache-2.0 */
/* The recording that a running process writes, found by what it has mapped. */
#ifndef VIEWER_RUNNING_H
#define VIEWER_RUNNING_H

#include <limits.h>
#include <stdbool.h>

#include "recording.h"

/* what: a file, or a process id if there is no file of that name. Fills path. 0, or a sentence was
 * said and the exit code. */
int running_find(const char *what, char path[PATH_MAX], long *pid);
bool running_lives(long pid);
bool running_recording(long pid, char path[PATH_MAX]); /* that it writes; false: none */
bool running_maps(long pid, const char *recording);    /* does the process write it? */

/* 0 if no process writes a recording there; else a sentence was said and the exit code. */
int running_refuse(const char *path);

/* Whether the process that writes this recording still does. */
bool running_writes(const struct recording *r);

#endif
