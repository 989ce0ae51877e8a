/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a program that `run` started: its recordings, or why there is none. */
#pragma once

#include "../base/usual.h"

#include <time.h>

/* Whether the recordings that `run` found are the ranks of one run, so that it can suggest their
 * folder. */

#define RUN_RANKS_MOST 4096 /* ranks are counted up to there */

struct run_ranks {
	char folder[PATH_MAX]; /* of all recordings so far, "" before the first */
	bool several_folders;
	unsigned count; /* of different ranks */
	unsigned char seen[RUN_RANKS_MOST / 8];
};

/* The folder, if there are several ranks and all recordings lie in it; else NULL. */
const char *run_ranks_folder(const struct run_ranks *r);

struct run_result {
	char path[PATH_MAX]; /* the recording with most events */
	uint64_t events, files;
	char **paths; /* of all of them, after which NULL */
	size_t path_room;
	bool refused; /* a process was refused memory, whatever came of it */
	struct run_ranks ranks;
	char why[2 * PATH_MAX]; /* why nothing was recorded; "" if there is a file */
	char runtime[PATH_MAX]; /* a file with NVIDIA's own runtime inside (simnotes.h), or "" */
};

/* Before the start: prepares the notes that the program's processes write. */
void run_result_listen(void);

/* After the end: reads the notes, and else finds files of the pattern that are not older than
 * `start`. */
void run_result_find(struct run_result *r, char **command, const char *pattern,
		     const struct timespec *start);
