/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings to be collected and the place of each in the lake. A recording is identified by
 * its process: if it is collected again it keeps its place, and the ranks of a run stay together.
 */
#ifndef VIEWER_LAKE_SOURCES_H
#define VIEWER_LAKE_SOURCES_H

#include "../ranks/ranks_look.h"
#include "lake.h"

struct lake_source {
	struct lake_place place;
	struct lake_place old; /* its present place in the lake; id "" = none */
	const struct rank_file *file;
};

struct lake_sources {
	struct rank_file *files;
	size_t file_count, file_room;
	struct lake_place *names;  /* by file: its id and its rank */
	struct lake_source *items; /* by process, each once */
	size_t count, room;
	struct lake_place *known; /* contents of the lake, by id */
	size_t known_count, known_room;
};

/* Finds all recordings. Returns 0, or an exit code after one error message. */
int lake_sources_find(struct lake_sources *out, char *const *paths);
/* Decides the place of each, by the contents of the lake. project NULL: the recording's own. */
void lake_sources_place(struct lake_sources *s, const char *lake, const char *project);
void lake_sources_free(struct lake_sources *s);

/* Whether a project may have this name: letters, digits, and . _ - */
bool lake_name_is_good(const char *name);

/* Removes or moves the files in the old place: rewritten ones are removed, the others move
 * along. */
void lake_move(const char *lake, const struct lake_source *s);

#endif
