/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the recordings that lie together are of one run. */
#ifndef VIEWER_RANKS_RUNS_H
#define VIEWER_RANKS_RUNS_H

#include "ranks_find.h"

/* Leaves one run of several that lie in one folder, the last one, and says so; of files that were
 * named all are meant: two of one rank are an error. 0, or a sentence was said and the exit code.
 */
int ranks_one_run(struct ranks_run *run, bool folders);

void ranks_leave(struct ranks_run *run, char *path); /* takes the path */

#endif
