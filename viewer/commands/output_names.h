/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the files that a command writes into a folder, one for each recording: no two are
 * alike, so that none is written over. */
#ifndef VIEWER_OUTPUT_NAMES_H
#define VIEWER_OUTPUT_NAMES_H

#include "../ranks/ranks_find.h"

/* "out/rank-3.csv"; of a recording that says no rank its own name, "out/run.csv", and with the
 * folders that it lies in where several would be alike: "out/node1-run.csv". As many as the run has
 * recordings. */
char **output_names(const struct ranks_run *run, const char *folder, const char *ending);
void output_names_free(char **names, size_t count);

#endif
