/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the recordings that lie together are of one run. */
#ifndef VIEWER_RANKS_RUNS_H
#define VIEWER_RANKS_RUNS_H

#include "ranks_find.h"

/* Leaves one run of several that lie in one folder, the last one, and says so; of files that were
 * named all are meant. paths: what was given, all of them folders or not. 0, or a sentence was said
 * and the exit code. */
int ranks_one_run(struct ranks_run *run, char *const *paths, bool folders, enum ranks_meant meant);

/* Simulated ranks that ran by themselves, each with a port of its own, are ranks of one job. */
void ranks_join_worlds(struct rank_file *items, size_t count);

/* Of items from..to, those of a job beside each other in order of their starts: the end (not in it)
 * of the run that begins with `from`. */
size_t ranks_run_end(const struct rank_file *items, size_t from, size_t to);
/* A process that a rank started: it has that rank's number. */
bool ranks_is_child(const struct rank_file *items, size_t count, const struct rank_file *f);

void ranks_leave(struct ranks_run *run, char *path); /* takes the path */

#endif
