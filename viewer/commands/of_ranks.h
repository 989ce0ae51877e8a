/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command and the recordings it was given: one, all of a run, or that of one rank. A command
 * itself knows of one recording only; it runs once for each, in a process of its own.
 */
#ifndef VIEWER_OF_RANKS_H
#define VIEWER_OF_RANKS_H

#include "../ranks/ranks_find.h"
#include "command.h"

int of_ranks(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);

/* The row of this rank. 0, or a sentence was said and the exit code. */
int of_ranks_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row);

/* The command answers for one recording: which ones there are to choose from. The exit code. */
int of_ranks_only_one(const struct command *c, const struct ranks_run *run, const char *where);

/* A member of a command's options that is a text. */
static inline const char **of_ranks_text(void *options, size_t offset)
{
	return (const char **)((char *)options + offset);
}

int of_pairs(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);

#endif
