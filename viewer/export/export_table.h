/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All blocks as rows of a table: first the freed ones in the order of their ends, then the live
 * ones in the order of their births.
 */
#ifndef VIEWER_EXPORT_TABLE_H
#define VIEWER_EXPORT_TABLE_H

#include "arrow.h"
#include "export.h"

enum column {
#define COLUMN(name, kind, unit, meaning) COLUMN_##name,
#include "export_columns.def"
#undef COLUMN
	COLUMNS
};

/* The kinds of export_columns.def. */
#define COLUMN_NUMBER ARROW_UINT64
#define COLUMN_TEXT   ARROW_TEXT

extern const struct arrow_column export_columns[COLUMNS];

struct export_cell {
	bool null;
	uint64_t number;
	const char *text;
	size_t len;
};

void export_arrow_row(struct arrow *a, const struct arrow_column *columns, unsigned count,
		      const struct export_cell *cells);

/* Calls row(ctx, cells) for each block. */
void export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		  void *ctx);

#endif
