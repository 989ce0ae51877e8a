/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lake: a folder for each table, in it project=/day=/run=/rank=, in that a Parquet file for each
 * recording. A file gets its name when it is whole, so that a reader never sees half of one.
 */
#ifndef VIEWER_LAKE_H
#define VIEWER_LAKE_H

#include <limits.h>
#include <stdbool.h>

#include "parquet.h"

#define LAKE_SCHEMA "1" /* of the files: a reader of before cannot take what has a higher one */

enum lake_table_id {
#define TABLE(name, meaning) LAKE_##name,
#define COLUMN(...)
#define END(name)
#include "tables.def"
	LAKE_allocations, /* every block; large, and only where it was asked for */
	LAKE_events,	  /* every event; of recordings that are asked directly */
	LAKE_TABLES
};

/* LAKE_ranks_host: which column that is. */
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

/* The names of the folders, from the outermost. */
#define LAKE_PARTITIONS 4
extern const struct lake_column lake_partitions[LAKE_PARTITIONS];

/* Where the rows of a recording lie. */
struct lake_place {
	char project[128], day[12], run[160];
	long rank;
	char id[128]; /* of the recording: the name of its files */
};

/* The file of a table; in `lake`. False: the name is too long. */
bool lake_path(char path[PATH_MAX], const char *lake, const char *table,
	       const struct lake_place *place);

/* Both make the folders that are needed. 0 or an errno. */
int lake_make(char *path, int flags, int *fd);
int lake_rename(const char *from, char *to);
void lake_finish(const char *lake); /* what no process needs any more goes */
/* A file goes, and its folders if they have become empty; the path is spoilt. */
void lake_tidy(char *path);

/* One recording's rows while they are written. */
struct lake_writer {
	/* Set these two: */
	const char *lake;
	const struct lake_place *place;
	const struct lake_place *old; /* where the lake has it now; NULL: it is a new lake */
	uint64_t began_ns;
	struct parquet *tables[LAKE_TABLES]; /* NULL: not of this writer */
	FILE *files[LAKE_TABLES];
	bool empty[LAKE_TABLES]; /* once it is closed */
	struct parquet_column columns[LAKE_TABLES][LAKE_COLUMNS_MOST];
	/* Of the large tables only these columns: bits. All, if none is set. */
	uint64_t wanted[LAKE_TABLES];
	uint8_t at[LAKE_TABLES][LAKE_COLUMNS_MOST]; /* 1 + which column of the file it is */
};

/* tables: a set of bits. 0, or a sentence was said and the exit code; then nothing is left. */
int lake_begin(struct lake_writer *w, unsigned tables, int level);
int lake_commit(struct lake_writer *w);
void lake_drop(struct lake_writer *w);

/* Cells of a row, in any order, then lake_row; what is not given is null. */
void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n);
void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes);
void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s);
void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len);
void lake_row(struct lake_writer *w, enum lake_table_id t);

#endif
