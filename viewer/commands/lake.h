/* SPDX-License-Identifier: Apache-2.0 */
/* Lakes and recordings that operands name, and which of the recordings are of one run. */
#pragma once

#include "../base/emit.h"
#include "../ranks/ranks_look.h"

struct lake_files {
	struct rank_file *items; /* sorted by run, within a run by start */
	size_t count, room;
};

/* Finds all recordings. Returns 0, or an exit code after one error message; free it in any case. */
int lake_files_find(struct lake_files *files, char *const *paths);
void lake_files_free(struct lake_files *files);

/* Emits a member "files" with the process and run of each recording. */
void lake_files_emit(const struct lake_files *files, struct emit *e);

/* Whether a folder is a lake: it has the table of recordings. */
bool lake_is_one(const char *path);
/* Whether it is a lake or an address; false after an error message. */
bool lake_may_be(const char *path);
