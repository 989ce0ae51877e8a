/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of an answer as an aligned table, JSON or CSV. */
#ifndef VIEWER_SQL_ROWS_H
#define VIEWER_SQL_ROWS_H

#include "../base/bytes.h"
#include "../base/json.h"
#include "../documents/document.h"

struct sql_rows {
	struct emit *out;
	bool csv;

	struct sql_column {
		char *name, *type;
		bool bytes, right;
		size_t width;
	} * columns;
	size_t count;
	char **cells; /* of text `count` a row, of JSON a whole row each */
	size_t rows, room;
};

/* For lake_ask; ctx is a struct sql_rows. */
void sql_columns(void *ctx, struct json columns);
void sql_row(void *ctx, struct json cells);
/* fine: the answer is whole. */
void sql_rows_end(struct sql_rows *r, bool fine);

#endif
