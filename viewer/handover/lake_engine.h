/* SPDX-License-Identifier: Apache-2.0 */
/* Hands over to Python (python/gpumemtrace/lake), in the first one that has DuckDB. */
#ifndef VIEWER_LAKE_ENGINE_H
#define VIEWER_LAKE_ENGINE_H

#include "../base/emit.h"
#include "../base/json.h"
#include "lake_files.h"

struct lake_question {
	const char *what;  /* "query", or the name of the command */
	const char *lake;  /* NULL: `files` are asked themselves */
	const char *text;  /* the query, the project, the main branch, or the page; NULL = none */
	const char *since; /* of regressions: a day */
	double limit;	   /* of regressions: bytes, or (percent) a share */
	bool percent, fail;
	bool large;	  /* of collect: blocks too */
	struct emit *out; /* for lines and a document of Python's making; NULL: only rows come */
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
/* Or is an address; else an error was said. */
bool lake_may_be(const char *path);

#endif
