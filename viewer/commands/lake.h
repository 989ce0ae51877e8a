/* SPDX-License-Identifier: Apache-2.0 */
/* Lakes and recordings that operands name, and which of the recordings are of one run. */
#pragma once

#include "../base/emit.h"
#include "../ranks/ranks_look.h"

struct lake_files {
	struct rank_file *items; /* the recordings of a run together, in order of their starts */
	size_t count, room;
};

/* Finds all recordings. Returns 0, or an exit code after one error message; free it in any case. */
int lake_files_find(struct lake_files *files, char *const *paths);
void lake_files_free(struct lake_files *files);

/* The process and the run of each recording: a member "files". */
void lake_files_emit(const struct lake_files *files, struct emit *e);

/* Whether a folder is a lake: it has the table of recordings. */
bool lake_is_one(const char *path);
/* Or is an address; else an error was said. */
bool lake_may_be(const char *path);
