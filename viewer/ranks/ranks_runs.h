/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which recordings in one place belong to one run. */
#pragma once

#include "ranks_find.h"

/* Keeps the last of several runs in one folder, with a note; files given by name are all kept.
 * paths: all folders, or all files. Returns 0, or an exit code after one error message. */
int ranks_one_run(struct ranks_run *run, char *const *paths, bool folders, enum ranks_meant meant);

/* Makes ranks that were simulated alone, each with its own port, ranks of one job. */
void ranks_join_worlds(struct rank_file *items, size_t count);

/* End (exclusive) of the run that begins with `from`. Items from..to must be grouped by job and
 * ordered by start. */
size_t ranks_run_end(const struct rank_file *items, size_t from, size_t to);
/* Whether a rank started this process, which then has that rank's number. */
bool ranks_is_child(const struct rank_file *items, size_t count, const struct rank_file *f);

void ranks_leave(struct ranks_run *run, char *path); /* takes ownership of the path */
