/* SPDX-License-Identifier: Apache-2.0 */
/* sql: a query over a lake or over recordings. */
#include <ctype.h>
#include <string.h>

#include "../ask/command.h"
#include "../base/asset.h"
#include "../handover/lake.h"
#include "../handover/lake_files.h"
#include "../handover/question.h"
#include "../recording/defs.h"
#include "../recording/owner_words.h"

/* The ready questions of a lake (views.sql). */

struct lake_view {
	char name[64];
	struct defs_text meaning, sql;
};

ASSET_FILE(views, "viewer/handover/views.sql");

#define VIEW "\n-- view "

/* Ready question i; false: there are no more. */
static bool lake_view(size_t i, struct lake_view *v)
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

/* ---- what there is ---- */

/* Columns of all tables, of all partitions first: i counts through them. */
static bool column_row(void *ctx, size_t i, struct row_sql_column *row)
{
	const struct lake_table *t = ctx;
	const struct lake_column *c =
		i < LAKE_PARTITIONS ? &lake_partitions[i] : &t->columns[i - LAKE_PARTITIONS];

	*row = (struct row_sql_column){
		.name = c->name, .type = lake_sql_type(c), .unit = c->unit, .meaning = c->meaning
	};
	return true;
}

static bool lake_table_row(void *ctx, size_t i, struct row_sql_table *row)
{
	const struct lake_table *t = &lake_tables[i];

	(void)ctx;
	*row = (struct row_sql_table){ .name = t->name,
				       .meaning = t->meaning,
				       .columns = { LAKE_PARTITIONS + t->count, column_row,
						    (void *)t } };
	return true;
}

static bool view_row(void *ctx, size_t i, struct row_sql_view *row)
{
	static struct lake_view v;

	(void)ctx;
	if (!lake_view(i, &v))
		return false;
	*row = (struct row_sql_view){ .name = v.name, .meaning = v.meaning, .sql = v.sql };
	return true;
}

static size_t view_count(void)
{
	struct lake_view v;
	size_t n = 0;

	while (lake_view(n, &v))
		n++;
	return n;
}

static int print_schema(struct emit *out)
{
	const struct row_sql_schema row = { .tables = { LAKE_TABLES, lake_table_row, NULL },
					    .views = { view_count(), view_row, NULL } };
	struct lake_view v;

	emit_document(out, sql_schema, &row);
	emit_title(out, "Tables (each has project, day, run, rank, month and process)");
	for (int t = 0; t < LAKE_TABLES; t++) {
		emit_line(out, "%s", "");
		emit_line(out, "%s: %s", lake_tables[t].name, lake_tables[t].meaning);
		for (unsigned c = 0; c < lake_tables[t].count; c++) {
			const struct lake_column *x = &lake_tables[t].columns[c];

			emit_line(out, "  %-24s%-10s%s%s%s", x->name, lake_sql_type(x), x->meaning,
				  x->unit[0] ? ", " : "", x->unit);
		}
	}
	emit_line(out, "%s", "");
	emit_title(out, "Ready questions: gpumemtrace sql \"from NAME\" LAKE");
	emit_line(out, "%s", "");
	for (size_t i = 0; lake_view(i, &v); i++)
		emit_line(out, "  %-18s%.*s", v.name, (int)v.meaning.len, v.meaning.s);
	return 0;
}

/* ---- a query ---- */

/* files: the lake is made of these; NULL: it is that of the operand. */
static int ask_query(const struct sql_options *o, const struct lake_files *files, struct emit *out)
{
	struct question q = { .out = out };

	question_begin(&q, QUESTION_LAKE, "query");
	question_text(&q, "query", o->query);
	question_text(&q, "form", o->csv ? "csv" : emit_json(out) ? "json" : "text");
	question_number(&q, "cut", words_are_cut());
	if (files)
		lake_files_emit(files, q.request);
	else
		question_text(&q, "lake", o->lake[0]);
	return question_ask(&q);
}

static int ask_recordings(const struct sql_options *o, struct emit *out)
{
	struct lake_files files;
	int rc = lake_files_find(&files, o->lake);

	if (!rc)
		rc = ask_query(o, &files, out);
	lake_files_free(&files);
	return rc;
}

int run_sql(const struct sql_options *o, struct emit *out)
{
	if (o->schema)
		return print_schema(out);
	if (!o->query)
		return say_error(
			EXIT_USAGE,
			"a query and a lake are needed: gpumemtrace sql \"from runs\" lake/; "
			"--schema lists what there is");
	if (strstr(o->lake[0], "://") || lake_is_one(o->lake[0])) {
		if (o->lake[1])
			return say_error(EXIT_USAGE, "%s is a lake; a query is about one lake",
					 o->lake[0]);
		return ask_query(o, NULL, out);
	}
	return ask_recordings(o, out);
}
