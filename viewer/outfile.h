/* SPDX-License-Identifier: Apache-2.0 */
/* Places where a recording is to be written: an earlier recording may go, anybody else's file not.
 */
#ifndef VIEWER_OUTFILE_H
#define VIEWER_OUTFILE_H

#include <stdbool.h>

/* 0 if path is free, empty or a recording, in a folder that can be written to; else a sentence was
 * said and the exit code. */
int outfile_check(const char *path);

/* Removes the recording (or empty file) at path and its live file. Same return values. */
int outfile_clear(const char *path);

#endif
