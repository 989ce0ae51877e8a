/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL of a lake: its tables as views over the files, and the ready questions (views.sql). */
#ifndef VIEWER_LAKE_SQL_H
#define VIEWER_LAKE_SQL_H

#include "../stacks/defs.h"
#include "lake.h"

struct lake_view {
	char name[64];
	struct defs_text meaning, sql;
};

/* The ith ready question; false: there are no more. */
bool lake_view(size_t i, struct lake_view *v);

/* The type of a column in SQL, of DuckDB and of Spark alike. */
const char *lake_sql_type(const struct lake_column *c);

/* Statements for DuckDB that make all of it, to `f`. Tables whose file is wanting are empty,
 * columns that older files lack are null. */
void lake_sql_prepare(FILE *f, const char *lake);

/* Which tables a query needs: bits. */
unsigned lake_sql_tables(const char *query);
/* Of a large table the columns that it may mean: bits. */
uint64_t lake_sql_columns(const char *query, enum lake_table_id t);

#endif
