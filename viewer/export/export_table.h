/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All blocks as rows of a table: first the freed ones in the order of their ends, then the live
 * ones in the order of their births.
 */
#pragma once

#include "arrow.h"
#include "export.h"

enum column {
#define COLUMN(name, kind, unit, meaning) COLUMN_##name,
#include "export_columns.def"
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

bool export_arrow_row(struct arrow_batch *b, const struct export_cell *cells); /* as arrow_row */
void export_arrow_add(void *arrow, const struct export_cell *cells);

/* The blocks, one by one. */
struct export_walk {
	struct export *x;
	struct lives_cursor ends;
	uint32_t next; /* next block to look at for those that were not freed */
};

void export_walk_first(struct export_walk *w, struct export *x);
bool export_walk_next(struct export_walk *w, uint32_t *life); /* false: there are no more */
/* Cells of the columns in `wanted`, a bit for each enum column. */
void export_row(struct export *x, uint32_t life, unsigned wanted,
		struct export_cell cells[COLUMNS]);

/* Calls row(ctx, cells) for each block. */
void export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		  void *ctx);
