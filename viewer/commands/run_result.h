/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a program that `run` started: its recordings, or why there is none. */
#ifndef VIEWER_RUN_RESULT_H
#define VIEWER_RUN_RESULT_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

#include "run_ranks.h"

struct run_result {
	char path[PATH_MAX]; /* the recording with most events */
	uint64_t events, files;
	struct run_ranks ranks;
	char why[2 * PATH_MAX]; /* nothing was recorded; "" if there is a file */
	char runtime[PATH_MAX]; /* what has NVIDIA's own runtime inside (simnotes.h), or "" */
};

/* Before the start: processes of the program note there what they do. */
void run_result_listen(void);

/* After the end: what was noted, and what else is found under the pattern that is not older than
 * `start`. */
void run_result_find(struct run_result *r, char **command, const char *pattern,
		     const struct timespec *start);

#endif
