/* SPDX-License-Identifier: Apache-2.0 */
/* A lake for one query: the tables that it names, of recordings, in a folder that goes afterwards.
 */
#ifndef VIEWER_LAKE_TEMPORARY_H
#define VIEWER_LAKE_TEMPORARY_H

#include "lake_sources.h"

struct lake_temporary {
	char path[PATH_MAX]; /* "" = there is none */
	struct lake_sources sources;
	const char *query;
	unsigned tables;
	size_t kept, skipped;
};

/* 0, or a sentence was said and the exit code. A recording that cannot be read is left out with a
 * note; if there is no other that is the error. Free it in any case. */
int lake_temporary_make(struct lake_temporary *t, char *const *paths, const char *query);
void lake_temporary_free(struct lake_temporary *t);

#endif
