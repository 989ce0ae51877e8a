/* SPDX-License-Identifier: Apache-2.0 */
/* Which recording of a run a command is about. */
#ifndef VIEWER_RANK_CHOICE_H
#define VIEWER_RANK_CHOICE_H

#include "../ranks/ranks_find.h"
#include "command.h"

/* The row of the rank that --rank names. 0, or a sentence was said and the exit code. */
int rank_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The same; of several runs only one may have it. */
int rank_choose_one(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The command answers for one recording and none was named: which there are. The exit code. */
int rank_needed(const struct command *c, const struct ranks_run *run, const char *where);

#endif
