/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings that operands name, and which of them are of one run. */
#ifndef VIEWER_LAKE_FILES_H
#define VIEWER_LAKE_FILES_H

#include "../base/bytes.h"
#include "../ranks/ranks_look.h"

struct lake_files {
	struct rank_file *items; /* the recordings of a run together, in order of their starts */
	size_t count, room;
};

/* Finds all recordings. Returns 0, or an exit code after one error message; free it in any case. */
int lake_files_find(struct lake_files *files, char *const *paths);
void lake_files_free(struct lake_files *files);

/* The process and the run of each recording: a JSON array of objects. */
void lake_files_json(const struct lake_files *files, struct bytes *out);

#endif
