/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the readable part of a recording and its live file into a new, complete recording. */
#pragma once

#include "recording.h"

/* The copy's fact COPYING_META: why it stops before the run's end. */
#define COPYING_META   "recovered"
#define COPYING_YES    "yes"	/* it is a snapshot, or the process was killed */
#define COPYING_SEARCH "search" /* fit or bisect ended the run, which they had started */

/* Writes the copy to path. Returns 0, or an exit code after an error message (and no file). */
int copying_write(const struct recording *r, const char *path, const char *why, uint64_t *events);
