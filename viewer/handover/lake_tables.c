/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#define TABLE(name, meaning)			 static const struct lake_column columns_##name[] = {
#define COLUMN(table, name, type, unit, meaning) { #name, LAKE_##type, unit, meaning },
#define END(name) \
	}         \
	;
#include "tables.def"

/* The same columns as in the exports. */
#define LAKE_NUMBER LAKE_INT
#define LAKE_UINT64 LAKE_INT
#define LAKE_UINT32 LAKE_INT
#define LAKE_UINT16 LAKE_INT
#define LAKE_INT32  LAKE_INT

static const struct lake_column columns_allocations[] = {
#define COLUMN(name, kind, unit, meaning) { #name, LAKE_##kind, unit, meaning },
#include "../export/export_columns.def"
#undef COLUMN
};

static const struct lake_column columns_events[] = {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) { #name, LAKE_##type, unit, meaning },
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
	{ "project", LAKE_TEXT, "",
	  "--project, or the name of the repository, or of the program's folder" },
	{ "day", LAKE_TEXT, "", "2026-11-22, of the run's start, UTC" },
	{ "run", LAKE_TEXT, "", "start of the run, host and process of its first rank" },
	{ "rank", LAKE_INT, "", "its rank, 0 if it says none" },
	{ "month", LAKE_TEXT, "", "2026-11, of the day" },
	{ "process", LAKE_TEXT, "", "host, number and start of the process, and its rank" },
};

const char *lake_sql_type(const struct lake_column *c)
{
	static const char *const types[] = {
		[LAKE_INT] = "bigint",
		[LAKE_FLAG] = "boolean",
		[LAKE_TEXT] = "varchar",
		[LAKE_TIME] = "timestamp",
	};

	return c == &lake_partitions[1] ? "date" : types[c->type];
}
