/* SPDX-License-Identifier: Apache-2.0 */
/* Where `run` has its program record to, and what lies there from before. */
#pragma once

#include "../base/usual.h"

#define RUN_OUTPUT "gpumemtrace.%p.gmt" /* where it is not said */

/* The pattern with the folder of now before it, so that it means the same wherever the program
 * goes. 0, or a sentence was said and the exit code. */
int run_output_absolute(const char *pattern, char absolute[PATH_MAX]);

/* Removes the recordings of an earlier run that this one would give other names because of: those
 * that the pattern names on this host, and those that further processes made beside them. One that
 * a process is writing stays. A pattern with %p names new files each time. Same return values. */
int run_output_clear(const char *absolute);

/* The pattern for glob(): anything for a placeholder, then `more`. */
void run_output_glob(const char *pattern, const char *more, char *out, int room);

/* A path as one reads it here: without the folder that we are in. */
const char *run_output_short(const char *path);
