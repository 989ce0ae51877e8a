/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command and the recordings it was given: one, all of a run, or that of one rank. A command
 * itself knows of one recording only; it runs once for each, in a process of its own.
 */
#pragma once

#include "../ask/command.h"
#include "../ranks/ranks_find.h"

int of_ranks(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);

/* A command of two runs: it runs once for each pair of recordings, in a process of its own. */

int of_pairs(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);

/* The row of the rank that --rank names. Returns 0, or an exit code after one error message. */
int rank_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The same; of several runs only one may have it. */
int rank_choose_one(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The error that a command needs one recording and none was chosen, with a list of them. Returns
 * the exit code. */
int rank_needed(const struct command *c, const struct ranks_run *run, const char *where);
