/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings that are to be collected and the place of each in the lake. A recording is known
 * by its process: what is collected again goes where it was, and the ranks of a run lie together.
 */
#ifndef VIEWER_LAKE_SOURCES_H
#define VIEWER_LAKE_SOURCES_H

#include "../ranks/ranks_look.h"
#include "lake.h"

struct lake_source {
	struct lake_place place;
	struct lake_place old; /* where the lake has it; id "" = it has not */
	const struct rank_file *file;
};

struct lake_sources {
	struct rank_file *files;
	size_t file_count, file_room;
	struct lake_place *names;  /* of each file: its id and its rank */
	struct lake_source *items; /* each process once */
	size_t count, room;
	struct lake_place *known; /* what the lake has, by id */
	size_t known_count, known_room;
};

/* Which recordings there are. 0, or a sentence was said and the exit code. */
int lake_sources_find(struct lake_sources *out, char *const *paths);
/* The place of each, by what the lake has. project NULL: that of the recording. */
void lake_sources_place(struct lake_sources *s, const char *lake, const char *project);
void lake_sources_free(struct lake_sources *s);

/* A name for a project: letters, digits, and . _ - */
bool lake_name_is_good(const char *name);

/* What the lake has in the old place goes: what was written anew, or comes along. */
void lake_move(const char *lake, const struct lake_source *s);

#endif
