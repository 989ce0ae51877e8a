/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings in a lake and their places, read from the names of its files alone. */
#ifndef VIEWER_LAKE_INDEX_H
#define VIEWER_LAKE_INDEX_H

#include "lake_sources.h"

void lake_index_read(struct lake_sources *s, const char *lake);
const struct lake_place *lake_index_find(const struct lake_sources *s, const char *id);

/* Whether a folder is a lake: it has the table of recordings. */
bool lake_is_one(const char *path);
/* Whether the table has a file. */
bool lake_has(const char *lake, const char *table);

#endif
