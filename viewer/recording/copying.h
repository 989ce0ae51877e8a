/* SPDX-License-Identifier: Apache-2.0 */
/* A whole recording made of what can be read of another, its live file included. */
#pragma once

#include "recording.h"

/* Why a copy stops before the run's end, as its meta COPYING_META says it. */
#define COPYING_META   "recovered"
#define COPYING_YES    "yes"	/* it is a snapshot, or the process was killed */
#define COPYING_SEARCH "search" /* fit or bisect ended the run, which they had started */

/* 0, or a sentence was said and the exit code: then there is no file. */
int copying_write(const struct recording *r, const char *path, const char *why, uint64_t *events);
