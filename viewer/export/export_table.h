/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All blocks as rows of a table: those that ended, in the order of their ends, then those that live
 * on, in the order of their births.
 */
#ifndef VIEWER_EXPORT_TABLE_H
#define VIEWER_EXPORT_TABLE_H

#include "export.h"

enum column_kind { COLUMN_NUMBER = 1, COLUMN_TEXT };

enum column {
#define COLUMN(name, kind, unit, meaning) COLUMN_##name,
#include "export_columns.def"
#undef COLUMN
	COLUMNS
};

struct export_column {
	const char *name;
	enum column_kind kind;
	const char *unit, *meaning;
};

extern const struct export_column export_columns[COLUMNS];

struct export_cell {
	bool null;
	uint64_t number;
	const char *text;
	size_t len;
};

/* row(ctx, cells) for each block. */
void export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		  void *ctx);

#endif
