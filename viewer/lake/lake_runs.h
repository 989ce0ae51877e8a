/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which recordings are of one run: those of one call of `collect`, and those that the lake has of
 * the same run from an earlier call (each node may collect its own ranks).
 */
#ifndef VIEWER_LAKE_RUNS_H
#define VIEWER_LAKE_RUNS_H

#include "lake_sources.h"

enum { LAKE_SIGN = 16 };

/* For qsort: the ranks of a run beside each other, in order of their starts. */
int lake_by_job(const void *a, const void *b);
/* Of files in that order: the end (not in it) of the run that begins with `from`. */
size_t lake_run_end(const struct lake_sources *s, const bool *alone, size_t from);

/* The end of a run's name: what its ranks have in common, as a number. */
void lake_job_sign(char sign[LAKE_SIGN], const struct rank_file *f);
/* A recording that the lake has of this run: the same job, begun at that time, and of other ranks.
 * NULL: none. */
const struct lake_place *lake_run_known(const struct lake_sources *s, size_t from, size_t to,
					const char *sign);

#endif
