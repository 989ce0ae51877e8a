/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the recording of a run that a command uses. */
#pragma once

#include "../ranks/ranks_find.h"
#include "../ask/command.h"

/* The row of the rank that --rank names. Returns 0, or an exit code after one error message. */
int rank_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The same; of several runs only one may have it. */
int rank_choose_one(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The error that a command needs one recording and none was chosen, with a list of them. Returns
 * the exit code. */
int rank_needed(const struct command *c, const struct ranks_run *run, const char *where);
