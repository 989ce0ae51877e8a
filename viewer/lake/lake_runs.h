/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups recordings by run: those of one call of `collect`, and those of the same run that the lake
 * has from an earlier call (each node may collect its own ranks).
 */
#ifndef VIEWER_LAKE_RUNS_H
#define VIEWER_LAKE_RUNS_H

#include "lake_sources.h"

enum { LAKE_SIGN = 16 };

/* For qsort: ranks of a run together, ordered by start. */
int lake_by_job(const void *a, const void *b);
/* End (exclusive) of the run that begins with `from`, for files in that order. */
size_t lake_run_end(const struct lake_sources *s, const bool *alone, size_t from);

/* The last part of a run's name: a hash of everything that its ranks have in common. */
void lake_job_sign(char sign[LAKE_SIGN], const struct rank_file *f);
/* A recording of this run that the lake has: the same job and start time, other ranks. NULL:
 * none. */
const struct lake_place *lake_run_known(const struct lake_sources *s, size_t from, size_t to,
					const char *sign);

#endif
