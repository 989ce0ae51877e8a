/* SPDX-License-Identifier: Apache-2.0 */
/* SQL for a lake: its tables as views over the files, and ready-made queries (views.sql). */
#ifndef VIEWER_LAKE_SQL_H
#define VIEWER_LAKE_SQL_H

#include "../stacks/defs.h"
#include "lake.h"

struct lake_view {
	char name[64];
	struct defs_text meaning, sql;
};

/* Ready-made query i; false: there are no more. */
bool lake_view(size_t i, struct lake_view *v);

/* The type of a column in SQL, of DuckDB and of Spark alike. */
const char *lake_sql_type(const struct lake_column *c);

/* Writes DuckDB statements that create all tables and views to `f`. Tables without files are empty,
 * and columns that older files lack are null. */
void lake_sql_prepare(FILE *f, const char *lake);

/* Tables that a query needs, as bits. */
unsigned lake_sql_tables(const char *query);
/* Columns of a large table that a query may use, as bits. */
uint64_t lake_sql_columns(const char *query, enum lake_table_id t);

#endif
