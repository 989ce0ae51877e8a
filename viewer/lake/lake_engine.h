/* SPDX-License-Identifier: Apache-2.0 */
/* Hands over to Python (python/gpumemtrace/lake), in the first one that has DuckDB. */
#ifndef VIEWER_LAKE_ENGINE_H
#define VIEWER_LAKE_ENGINE_H

#include "../base/json.h"
#include "lake_files.h"

struct lake_question {
	const char *what; /* "collect", "query" or "dashboard" */
	const char *lake; /* NULL: `files` are asked themselves */
	const char *text; /* the query, or the project; NULL = none */
	bool large;	  /* of collect: blocks too */
	const struct lake_files *files;
	/* The answer: names and types of the columns, an array of arrays of two (NULL: they are
	 * known); then each row, an array. */
	void (*columns)(void *ctx, struct json columns);
	void (*row)(void *ctx, struct json cells);
	void *ctx;
};

/* 0, or a sentence was said and the exit code: wrong SQL, or no DuckDB, is wrong usage. Passes
 * signals on, so that nothing half done stays, and ends this process by them. */
int lake_ask(const struct lake_question *q);

/* Whether a folder is a lake: it has the table of recordings. */
bool lake_is_one(const char *path);

#endif
