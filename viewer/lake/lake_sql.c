/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_sql.h"

#include <ctype.h>
#include <string.h>

#include "../base/asset.h"
#include "../base/word.h"
#include "lake_index.h"

ASSET_FILE(views, "viewer/lake/views.sql");

#define VIEW "\n-- view "

bool lake_view(size_t i, struct lake_view *v)
{
	const char *at = asset_views, *end = asset_end_views, *colon, *line, *next;

	do {
		at = memmem(at, (size_t)(end - at), VIEW, strlen(VIEW));
		if (!at)
			return false;
		at += strlen(VIEW);
	} while (i--);
	colon = memchr(at, ':', (size_t)(end - at));
	line = memchr(at, '\n', (size_t)(end - at));
	next = memmem(at, (size_t)(end - at), VIEW, strlen(VIEW));
	next = next ? next : end;
	if (!colon || !line || colon > line)
		return false;
	snprintf(v->name, sizeof(v->name), "%.*s", (int)(colon - at), at);
	v->meaning = (struct defs_text){ colon + 2, (size_t)(line - colon - 2) };
	while (next > line && isspace((unsigned char)next[-1]))
		next--;
	v->sql = (struct defs_text){ line + 1, (size_t)(next - line - 1) };
	return true;
}

const char *lake_sql_type(const struct lake_column *c)
{
	static const char *const types[] = {
		[PARQUET_INT] = "bigint",
		[PARQUET_FLAG] = "boolean",
		[PARQUET_TEXT] = "varchar",
		[PARQUET_TIME] = "timestamp",
	};

	return c == &lake_partitions[1] ? "date" : types[c->type];
}

static void put_nulls(FILE *f, const struct lake_column *columns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fprintf(f, "null::%s as \"%s\", ", lake_sql_type(&columns[i]), columns[i].name);
}

static void put_path(FILE *f, const char *lake, const char *table)
{
	fputs("'", f);
	for (; *lake; lake++)
		fprintf(f, *lake == '\'' ? "''" : "%c", *lake);
	fprintf(f, "/%s/*/*/*/*/*.parquet'", table);
}

static void put_files(FILE *f, const char *lake, const char *table)
{
	fputs(" union all by name select * from read_parquet(", f);
	put_path(f, lake, table);
	fputs(", union_by_name=true, hive_partitioning=true, hive_types={", f);
	for (unsigned i = 0; i < LAKE_PARTITIONS; i++)
		fprintf(f, "%s'%s': %s", i ? ", " : "", lake_partitions[i].name,
			lake_sql_type(&lake_partitions[i]));
	fputs("})", f);
}

static void put_table(FILE *f, const struct lake_table *table, const char *lake)
{
	fprintf(f, "create or replace view \"%s\" as select * exclude none_ from (select ",
		table->name);
	put_nulls(f, lake_partitions, LAKE_PARTITIONS);
	put_nulls(f, table->columns, table->count);
	fputs("1 as none_ where false", f);
	if (lake)
		put_files(f, lake, table->name);
	fputs(");\n", f);
}

/* A remote lake shows only at the query whether it has a table. So the table is made empty first,
 * and the engine skips the second statement if there are no files. */
void lake_sql_prepare(FILE *f, const char *lake)
{
	bool far = strstr(lake, "://");
	struct lake_view v;

	for (int t = 0; t < LAKE_TABLES; t++) {
		const struct lake_table *table = &lake_tables[t];

		if (far || !lake_has(lake, table->name))
			put_table(f, table, NULL);
		if (far ? t <= LAKE_allocations : lake_has(lake, table->name))
			put_table(f, table, lake);
	}
	for (size_t i = 0; lake_view(i, &v); i++)
		fprintf(f, "create view \"%s\" as %.*s;\n", v.name, (int)v.sql.len, v.sql.s);
}

/* Whether the text contains the name as a whole word. */
static bool has_name(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = strcasestr(text, name); at; at = strcasestr(at + 1, name))
		if ((at == text || !word_has(at[-1])) && !word_has(at[n]))
			return true;
	return false;
}

/* A query that names no large table gets all other tables, because it may list them. */
unsigned lake_sql_tables(const char *query)
{
	unsigned small = (1u << LAKE_allocations) - 1, tables = 0;
	struct lake_view v;

	for (int t = LAKE_allocations; t < LAKE_TABLES; t++)
		if (has_name(query, lake_tables[t].name))
			tables |= 1u << t;
	for (int t = 0; t < LAKE_allocations; t++)
		if (!tables || has_name(query, lake_tables[t].name))
			return tables | small;
	for (size_t i = 0; lake_view(i, &v); i++)
		if (has_name(query, v.name))
			return tables | small;
	return tables;
}

/* count(*) needs no column. Any other star may mean all, and so may a statement without select. */
uint64_t lake_sql_columns(const char *query, enum lake_table_id t)
{
	const struct lake_table *table = &lake_tables[t];
	uint64_t columns = 0;

	if (!has_name(query, "select") || has_name(query, "natural"))
		return 0;
	for (const char *star = strchr(query, '*'); star; star = strchr(star + 1, '*')) {
		const char *p = star;

		while (p > query && isspace((unsigned char)p[-1]))
			p--;
		if (p == query || p[-1] != '(')
			return 0;
		for (p--; p > query && isspace((unsigned char)p[-1]);)
			p--;
		if (p - query < 5 || strncasecmp(p - 5, "count", 5))
			return 0;
	}
	for (unsigned c = 0; c < table->count; c++)
		if (has_name(query, table->columns[c].name))
			columns |= 1ull << c;
	return columns ? columns : 1;
}
