/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#define TABLE(name, meaning)			 static const struct lake_column columns_##name[] = {
#define COLUMN(table, name, type, unit, meaning) { #name, PARQUET_##type, unit, meaning },
#define END(name) \
	}         \
	;
#include "tables.def"

/* The same columns as in the exports. */
#define PARQUET_NUMBER PARQUET_INT
#define PARQUET_UINT64 PARQUET_INT
#define PARQUET_UINT32 PARQUET_INT
#define PARQUET_UINT16 PARQUET_INT
#define PARQUET_INT32  PARQUET_INT

static const struct lake_column columns_allocations[] = {
#define COLUMN(name, kind, unit, meaning) { #name, PARQUET_##kind, unit, meaning },
#include "../export/export_columns.def"
#undef COLUMN
};

static const struct lake_column columns_events[] = {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) \
	{ #name, PARQUET_##type, unit, meaning },
#include "../export/export_event_columns.def"
#undef EVENT_COLUMN
};

#define COUNT(name) (sizeof(columns_##name) / sizeof(columns_##name[0]))

const struct lake_table lake_tables[LAKE_TABLES] = {
#define TABLE(name, meaning) { #name, meaning, columns_##name, COUNT(name) },
#define COLUMN(...)
#define END(name)
#include "tables.def"
	{ "allocations", "A block that ever was: with --tables allocations, and of recordings.",
	  columns_allocations, COUNT(allocations) },
	{ "events", "An event, in order: of recordings only, not in a lake.", columns_events,
	  COUNT(events) },
};

const struct lake_column lake_partitions[LAKE_PARTITIONS] = {
	{ "project", PARQUET_TEXT, "", "--project, or the name of the program's folder" },
	{ "day", PARQUET_TEXT, "", "2026-11-22, of the run's start, UTC" },
	{ "run", PARQUET_TEXT, "", "start of the run, host and process of its first rank" },
	{ "rank", PARQUET_INT, "", "its rank, 0 if it says none" },
};
