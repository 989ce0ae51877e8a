/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a document as lines of text: the same that are a list in JSON. */
#pragma once

#include "document.h"

enum column_style {
	COLUMN_PLAIN = 1, /* a number as it is, neither 1.5 GiB nor 1,024 */
	COLUMN_SHARE,	  /* of a number its share of `all` */
	COLUMN_CUT,	  /* of a line of code the end is cut; else its place alone is left */
	COLUMN_END,	  /* of a text its end, where it does not fit into room */
	COLUMN_PLACE,	  /* of a line of code its file and line */
	COLUMN_KEY,   /* a name that is never cut: the first column; on a line of its own where it
			 does not fit */
	COLUMN_WRAP,  /* a text on several lines below each other; the last column */
	COLUMN_BELOW, /* a text on lines of its own behind the row, `gap` to the right */
};

struct text_column {
	const char *title;
	unsigned member; /* AT_...; AT_..._owner is function, file and line in words */
	unsigned gap;	 /* spaces in front */
	int width;	 /* at least; below 0 = to the left, else to the right */
	size_t room;	 /* a line of code is cut to so many columns; 0 = as it is */
	enum column_style style;
	size_t item;   /* of a member that is a list of words */
	unsigned when; /* a flag of the row: without it the cell is empty; 0 = always there */
	uint64_t all;
};

#define TEXT_COLUMN(title_, at, gap_, width_, ...)                                      \
	{                                                                               \
		.title = (title_), .member = AT_##at, .gap = (gap_), .width = (width_), \
		__VA_ARGS__                                                             \
	}

/* Text only: nothing in JSON. The titles, then a line for each row; a column is as wide as its
 * widest row. most: rows, 0 = all. Returns how many were left out. */
#define emit_columns(out, table, rows, columns, most)                                        \
	columns_write(out, &document_##table, columns, sizeof(columns) / sizeof(*(columns)), \
		      1 ? (rows) : (const struct rows_##table *)NULL, most)

/* The largest rows, and what says how many are left out, after `indent`; top: as of --top. */
#define emit_top(out, table, rows, columns, top, indent) \
	emit_left_out(out, indent,                       \
		      emit_columns(out, table, rows, columns, (top) > 0 ? (size_t)(top) : 0))

/* Text: "... and 3 smaller ones", nothing of none. */
void emit_left_out(struct emit *out, const char *indent, size_t count);

size_t columns_write(struct emit *out, const struct document *d, const struct text_column *columns,
		     size_t count, const void *rows, size_t most);
