/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows of a document, which are a list in JSON, as lines of text. */
#pragma once

#include "document.h"

enum column_style {
	COLUMN_PLAIN = 1, /* a number as it is, neither 1.5 GiB nor 1,024 */
	COLUMN_SHARE,	  /* a number as its share of `all` */
	COLUMN_CUT,	  /* a call site, cut at its end; other styles keep file and line */
	COLUMN_END,	  /* a text, cut at its beginning if it does not fit into room */
	COLUMN_KEY,	  /* first column: a name that is never cut, if too wide on its own line */
	COLUMN_WRAP,	  /* last column: a text on several lines below each other */
	COLUMN_BELOW,	  /* a text on lines of its own after the row, indented by `gap` */
};

struct text_column {
	const char *title;
	unsigned member; /* AT_... of a text, words, a class or a number without a sign;
			  * AT_..._owner is function, file and line in words */
	unsigned gap;	 /* spaces in front */
	int width;	 /* least width; below 0 = aligned left, else right */
	size_t room;	 /* columns to which a call site is cut, 0 = not cut */
	enum column_style style;
	size_t item;   /* index, for a member that is a list of words */
	unsigned when; /* AT_... of a flag, without which the cell is empty; 0 = none */
	uint64_t all;  /* of COLUMN_SHARE */
};

#define TEXT_COLUMN(title_, at, gap_, width_, ...)                                      \
	{                                                                               \
		.title = (title_), .member = AT_##at, .gap = (gap_), .width = (width_), \
		__VA_ARGS__                                                             \
	}

/* Text only, nothing in JSON: the titles, then a line for each of at most `most` rows (0 = all). A
 * column is as wide as its widest cell. Returns how many rows were left out. */
#define emit_columns(out, table, rows, columns, most)                                        \
	columns_write(out, &document_##table, columns, sizeof(columns) / sizeof(*(columns)), \
		      1 ? (rows) : (const struct rows_##table *)NULL, most)

/* The first `top` rows (0 or less = all), and after `indent` how many are left out. */
#define emit_top(out, table, rows, columns, top, indent) \
	emit_left_out(out, indent,                       \
		      emit_columns(out, table, rows, columns, (top) > 0 ? (size_t)(top) : 0))

/* Text: "... and 3 smaller ones", nothing if count is 0. */
void emit_left_out(struct emit *out, const char *indent, size_t count);

size_t columns_write(struct emit *out, const struct document *d, const struct text_column *columns,
		     size_t count, const void *rows, size_t most);
