/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as a Parquet file: every column may be null, a dictionary where values come again,
 * pages packed with zstd. Rows are kept until a row group is full, then written.
 */
#ifndef VIEWER_PARQUET_H
#define VIEWER_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum parquet_type {
	PARQUET_INT,  /* signed, 64 bits */
	PARQUET_FLAG, /* true or false */
	PARQUET_TEXT, /* UTF-8 */
	PARQUET_TIME, /* microseconds since 1970: a clock without a zone, ours is UTC */
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
};

struct parquet;
struct column_values;

#define PARQUET_GROUP 122880 /* rows of a row group: what DuckDB gives one thread */
#define PARQUET_FAST  0	     /* level: not packed at all, for files that are read once */
#define PARQUET_SMALL 3

/* The columns stay the caller's and must outlive the writer. */
struct parquet *parquet_open(FILE *f, const struct parquet_column *columns, unsigned count,
			     int level);
/* What the file says of itself; key and value stay the caller's. */
#define PARQUET_FACTS 8
void parquet_fact(struct parquet *p, const char *key, const char *value);

/* Cells of a row, in any order (parquet_column.h), then parquet_row. A cell that is not given is
 * null. */
struct column_values *parquet_column(struct parquet *p, unsigned column);
void parquet_row(struct parquet *p);
uint64_t parquet_rows(const struct parquet *p); /* so far */

/* What is left, and the footer. The file stays open; its errors are the caller's to look for. */
void parquet_close(struct parquet *p);

#endif
