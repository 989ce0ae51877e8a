/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command on the recordings that it was given: one, all of a run, or one rank's. Most
 * commands read a single recording; for several, Python asks the library about each (ask_ranks.c).
 */
#pragma once

#include "../ask/command.h"
#include "../ranks/ranks_find.h"

int of_ranks(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);

/* Print a row for each recording, or for each pair of ranks of two runs. Return an exit code. */
int ranks_rows(const struct command *c, const void *options, const struct options_common *common,
	       const struct ranks_run *run, struct emit *out);
int ranks_pairs(const struct diff_options *o, const struct options_common *common,
		const struct ranks_run *old, const struct ranks_run *new, struct emit *out);

/* The row of the rank that --rank names. Returns 0, or an exit code after one error message. */
int rank_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The same, but an error if several runs have a recording of that rank. */
int rank_choose_one(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The error that a command needs one recording and none was chosen, with a list of them. Returns
 * the exit code. */
int rank_needed(const struct command *c, const struct ranks_run *run, const char *where);
