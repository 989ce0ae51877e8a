/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a lake and the rows that a recording has in them. They go out as CSV; Python
 * (python/gpumemtrace/lake) makes Parquet files of them, and knows where these stand.
 */
#pragma once

#include "../base/bytes.h"
#include "../recording/owners.h"
#include "../answers/peak.h"
#include "../recording/recording.h"
#include "../base/emit.h"
#include "../ranks/ranks_look.h"

enum lake_type {
	LAKE_INT,  /* 64 bits, with a sign */
	LAKE_FLAG, /* true or false */
	LAKE_TEXT, /* UTF-8 */
	LAKE_TIME, /* microseconds since 1970, UTC */
};

enum lake_table_id {
#define TABLE(name, meaning) LAKE_##name,
#define COLUMN(...)
#define END(name)
#include "lake_tables.def"
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
#include "lake_tables.def"

#define LAKE_COLUMNS_MOST 64

struct lake_column {
	const char *name;
	enum lake_type type;
	const char *unit, *meaning;
};

struct lake_table {
	const char *name, *meaning;
	const struct lake_column *columns;
	unsigned count;
};

extern const struct lake_table lake_tables[LAKE_TABLES];

/* Columns of every table; month is the name of a folder. */
#define LAKE_PARTITIONS 6
extern const struct lake_column lake_partitions[LAKE_PARTITIONS];

/* The type of a column in SQL, of DuckDB and of Spark alike. */
const char *lake_sql_type(const struct lake_column *c);

/* State of writing one recording's rows. */
struct lake_writer {
	size_t nth;		  /* first cell of every row */
	FILE *files[LAKE_TABLES]; /* NULL: this writer does not write it */
	/* Columns of the large tables, as bits: only these are written. All of them if no bit is
	 * set. */
	uint64_t wanted[LAKE_TABLES];
	const char *root; /* of the repository; columns `file` are relative to it */

	struct bytes cells[LAKE_TABLES][LAKE_COLUMNS_MOST]; /* of the row; without bytes: null */
};

bool lake_wants(const struct lake_writer *w, enum lake_table_id t, unsigned column);

/* Sets a cell of a row, in any order; lake_row ends the row. Cells that were not set are null. */
void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n);
void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes);
void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s);
void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len);
void lake_row(struct lake_writer *w, enum lake_table_id t);

/* Cells by the names of their columns. */

#define put_int(w, table, column, n) \
	lake_int((w), LAKE_##table, LAKE_##table##_##column, (int64_t)(n))
#define put_flag(w, table, column, yes) lake_flag((w), LAKE_##table, LAKE_##table##_##column, (yes))
#define put_text(w, table, column, s)	lake_text((w), LAKE_##table, LAKE_##table##_##column, (s))

/* 0 is null. */
#define put_known(w, table, column, n)                     \
	do {                                               \
		uint64_t known_ = (uint64_t)(n);           \
		if (known_)                                \
			put_int(w, table, column, known_); \
	} while (0)

#define put_owner(w, table, owner_, module_)                 \
	do {                                                 \
		const struct owner *of_ = (owner_);          \
		put_text(w, table, function, of_->function); \
		put_text(w, table, file, of_->file);         \
		put_known(w, table, line, of_->line);        \
		put_text(w, table, module, (module_));       \
	} while (0)

/* Whose run it is: the value of column i of the table of recordings, and the column's name. */
enum { LAKE_IDENTITY = 12 };
struct defs_text lake_identity(const struct defs *d, size_t i, const char **name);

/* Takes out of a command what names one run of it. */
void lake_program(char *command);

/* Writes a recording's rows into every table that the writer has. */

/* 0, or an exit code after one error message; the rows are not whole then. */
int lake_recording_rows(struct lake_writer *w, const char *path);

/* ---- parts ---- */

struct lake_rows {
	struct lake_writer *w;
	struct recording *recording;
	struct timeline
		*timeline;  /* of the device with the highest peak; its device -1: none had */
	bool out_of_memory; /* and no later allocation succeeded */
	uint64_t refusals;
	char module[512]; /* result for the last stack */
};

/* Classes and modules around the innermost forward methods: "Net/Block", or "" outside of all. */
const char *lake_module(struct lake_rows *x, uint32_t stack);

void lake_device_rows(struct lake_rows *x);			   /* devices, classes */
void lake_rank_row(struct lake_rows *x, struct peak_answer *peak); /* and the rows of growth */

/* Lakes and recordings that operands name, and which of the recordings are of one run. */

struct lake_files {
	struct rank_file *items; /* the recordings of a run together, in order of their starts */
	size_t count, room;
};

/* Finds all recordings. Returns 0, or an exit code after one error message; free it in any case. */
int lake_files_find(struct lake_files *files, char *const *paths);
void lake_files_free(struct lake_files *files);

/* The process and the run of each recording: a member "files". */
void lake_files_emit(const struct lake_files *files, struct emit *e);

/* Whether a folder is a lake: it has the table of recordings. */
bool lake_is_one(const char *path);
/* Or is an address; else an error was said. */
bool lake_may_be(const char *path);

/*
 * The rows of many recordings for Python, which starts this: `gpumemtrace --lake-rows FOLDER TABLES
 * ALLOCATIONS EVENTS`. The three numbers are bits: which tables, and which columns of the two large
 * ones. Paths come on stdin, a zero behind each. On stdout a line of JSON for each recording, in
 * order: {"error": ...}, or {"bytes": N} and behind it N bytes: for each table a line "NAME BYTES"
 * and its rows. Those of the large tables go to the file FOLDER/NTH.NAME.
 */

#define LAKE_WORK "--lake-rows"

int lake_work(char *const *words); /* behind that; an exit code */
