/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#define TABLE(name, meaning)			 static const struct lake_column columns_##name[] = {
#define COLUMN(table, name, type, unit, meaning) { #name, LAKE_##type, unit, meaning },
#define END(name) \
	}         \
	;
#include "lake_tables.def"

/* The same columns as in the exports. */
#define LAKE_NUMBER LAKE_INT
#define LAKE_UINT64 LAKE_INT
#define LAKE_UINT32 LAKE_INT
#define LAKE_UINT16 LAKE_INT
#define LAKE_INT32  LAKE_INT

static const struct lake_column columns_allocations[] = {
#define COLUMN(name, kind, unit, meaning) { #name, LAKE_##kind, unit, meaning },
#include "../export/export_columns.def"
};

static const struct lake_column columns_events[] = {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) { #name, LAKE_##type, unit, meaning },
#include "../export/export_event_columns.def"
};

#define COUNT(name) (sizeof(columns_##name) / sizeof(columns_##name[0]))

const struct lake_table lake_tables[LAKE_TABLES] = {
#define TABLE(name, meaning) { #name, meaning, columns_##name, COUNT(name) },
#define COLUMN(...)
#define END(name)
#include "lake_tables.def"
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

bool lake_wants(const struct lake_writer *w, enum lake_table_id t, unsigned column)
{
	return w->files[t] && (!w->wanted[t] || w->wanted[t] >> column & 1);
}

/* NULL: the column is not written. */
static struct bytes *lake_cell(struct lake_writer *w, enum lake_table_id t, unsigned column)
{
	struct bytes *cell = &w->cells[t][column];

	cell->len = 0;
	return lake_wants(w, t, column) ? cell : NULL;
}

void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n)
{
	struct bytes *cell = lake_cell(w, t, column);
	char digits[24];

	if (cell)
		bytes_add(cell, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, n));
}

void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes)
{
	struct bytes *cell = lake_cell(w, t, column);

	if (cell)
		bytes_add(cell, yes ? "true" : "false", yes ? 4 : 5);
}

/* So that checkouts of several people have the same paths. */
static size_t private_part(const struct lake_writer *w, const char *path, size_t len)
{
	static const char packages[] = "/site-packages/";
	const char *at = memmem(path, len, packages, strlen(packages));
	size_t n = strlen(w->root);

	if (at)
		return (size_t)(at - path) + strlen(packages);
	return n && n + 1 < len && !memcmp(path, w->root, n) && path[n] == '/' ? n + 1 : 0;
}

void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len)
{
	struct bytes *cell = len ? lake_cell(w, t, column) : NULL;
	const char *quote;

	if (!cell)
		return;
	if (w->root && !strcmp(lake_tables[t].columns[column].name, "file")) {
		size_t n = private_part(w, s, len);

		s += n;
		len -= n;
	}
	bytes_add(cell, "\"", 1);
	for (; (quote = memchr(s, '"', len)); len -= (size_t)(quote - s) + 1, s = quote + 1) {
		bytes_add_text(cell, s, (size_t)(quote - s));
		bytes_add(cell, "\"\"", 2);
	}
	bytes_add_text(cell, s, len);
	bytes_add(cell, "\"", 1);
}

void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s)
{
	if (s)
		lake_bytes(w, t, column, s, strlen(s));
}

void lake_row(struct lake_writer *w, enum lake_table_id t)
{
	FILE *f = w->files[t];

	fprintf(f, "%zu", w->nth);
	for (unsigned c = 0; c < lake_tables[t].count; c++) {
		struct bytes *cell = &w->cells[t][c];

		if (!lake_wants(w, t, c))
			continue;
		fputc(',', f);
		if (cell->len)
			fwrite(cell->p, 1, cell->len, f);
		cell->len = 0;
	}
	fputc('\n', f);
}
