/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as a Parquet file. Every column may be null, repeated values use a dictionary, and
 * pages are packed with zstd. Rows are kept in memory until a row group is full.
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
	PARQUET_TIME, /* microseconds since 1970 without a time zone; ours is UTC */
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
};

struct parquet;
struct column_values;

#define PARQUET_GROUP 122880 /* rows of a row group: DuckDB's unit for one thread */
#define PARQUET_FAST  0	     /* level: uncompressed, for files that are read once */
#define PARQUET_SMALL 3

/* The columns belong to the caller and must outlive the writer. */
struct parquet *parquet_open(FILE *f, const struct parquet_column *columns, unsigned count,
			     int level);
/* Metadata of the file; key and value belong to the caller. */
#define PARQUET_FACTS 8
void parquet_fact(struct parquet *p, const char *key, const char *value);

/* A cell of the row (parquet_column.h), in any order; parquet_row ends the row. Cells that were not
 * set are null. */
struct column_values *parquet_column(struct parquet *p, unsigned column);
void parquet_row(struct parquet *p);
uint64_t parquet_rows(const struct parquet *p); /* so far */

/* Writes the remaining rows and the footer. The file stays open; the caller checks its errors. */
void parquet_close(struct parquet *p);

#endif
