/* SPDX-License-Identifier: Apache-2.0 */
/* Asks DuckDB, which runs in a Python that has it. */
#ifndef VIEWER_LAKE_ENGINE_H
#define VIEWER_LAKE_ENGINE_H

#include "../base/json.h"

struct lake_question {
	const char *prepare, *query; /* SQL */
	/* The names and types of the columns, an array of arrays of two; then each row, an array.
	 */
	void (*columns)(void *ctx, struct json columns);
	void (*row)(void *ctx, struct json cells);
	void *ctx;
};

/* 0, or a sentence was said and the exit code: wrong SQL, or no DuckDB, is wrong usage. */
int lake_ask(const struct lake_question *q);

#endif
