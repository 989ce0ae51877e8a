/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the recordings that `run` found are the ranks of one run, so that it can suggest their
 * folder. */
#ifndef VIEWER_RUN_RANKS_H
#define VIEWER_RUN_RANKS_H

#include <limits.h>
#include <stdbool.h>

#define RUN_RANKS_MOST 4096 /* ranks are counted up to there */

struct run_ranks {
	char folder[PATH_MAX]; /* of all recordings so far, "" before the first */
	bool several_folders;
	unsigned count; /* of different ranks */
	unsigned char seen[RUN_RANKS_MOST / 8];
};

void run_ranks_note(struct run_ranks *r, const char *path);

/* The folder, if there are several ranks and all recordings lie in it; else NULL. */
const char *run_ranks_folder(const struct run_ranks *r);

#endif
