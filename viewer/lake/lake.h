/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lake has a folder per table, in it project=/day=/run=/rank=, and in that a Parquet file per
 * recording. A file gets its name when it is complete, so that a reader never sees half of one.
 */
#ifndef VIEWER_LAKE_H
#define VIEWER_LAKE_H

#include <limits.h>
#include <stdbool.h>

#include "parquet.h"

#define LAKE_SCHEMA "1" /* of the files: older readers ignore files with a higher one */

enum lake_table_id {
#define TABLE(name, meaning) LAKE_##name,
#define COLUMN(...)
#define END(name)
#include "tables.def"
	LAKE_allocations, /* every block; large, and only if requested */
	LAKE_events,	  /* every event; for queries on recordings */
	LAKE_TABLES
};

/* LAKE_ranks_host: the index of that column. */
#define TABLE(name, meaning)			 enum {
#define COLUMN(table, name, type, unit, meaning) LAKE_##table##_##name,
#define END(name)           \
	LAKE_COLUMNS_##name \
	}                   \
	;
#include "tables.def"

#define LAKE_COLUMNS_MOST 64

struct lake_column {
	const char *name;
	enum parquet_type type;
	const char *unit, *meaning;
};

struct lake_table {
	const char *name, *meaning;
	const struct lake_column *columns;
	unsigned count;
};

extern const struct lake_table lake_tables[LAKE_TABLES];

/* Names of the partition folders, from the outermost. */
#define LAKE_PARTITIONS 4
extern const struct lake_column lake_partitions[LAKE_PARTITIONS];

/* Place of a recording's rows. */
struct lake_place {
	char project[128], day[12], run[160];
	long rank;
	char id[128]; /* of the recording: the name of its files */
};

/* Path of a table's file in `lake`. False: the name is too long. */
bool lake_path(char path[PATH_MAX], const char *lake, const char *table,
	       const struct lake_place *place);

/* Both make missing folders. Return 0 or an errno. */
int lake_make(char *path, int flags, int *fd);
int lake_rename(const char *from, char *to);
void lake_finish(const char *lake); /* removes files that no process needs any more */
/* Removes a file, and its folders if they are empty then; changes the path. */
void lake_tidy(char *path);

/* State of writing one recording's rows. */
struct lake_writer {
	/* Set by the caller: */
	const char *lake;
	const struct lake_place *place;
	const struct lake_place *old; /* its present place; NULL: it is new in the lake */
	uint64_t began_ns;
	struct parquet *tables[LAKE_TABLES]; /* NULL: this writer does not write it */
	FILE *files[LAKE_TABLES];
	bool empty[LAKE_TABLES]; /* after closing */
	struct parquet_column columns[LAKE_TABLES][LAKE_COLUMNS_MOST];
	/* Columns of the large tables, as bits: only these are written. All of them if no bit is
	 * set. */
	uint64_t wanted[LAKE_TABLES];
	uint8_t at[LAKE_TABLES][LAKE_COLUMNS_MOST]; /* 1 + index of the column in the file */
};

/* tables: as bits. Returns 0, or an exit code after one error message; then no file is left. */
int lake_begin(struct lake_writer *w, unsigned tables, int level);
int lake_commit(struct lake_writer *w);
void lake_drop(struct lake_writer *w);

/* Sets a cell of a row, in any order; lake_row ends the row. Cells that were not set are null. */
void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n);
void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes);
void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s);
void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len);
void lake_row(struct lake_writer *w, enum lake_table_id t);

#endif
