/* SPDX-License-Identifier: Apache-2.0 */
/* A lake, the tables of many recordings: collect, compact, regressions, dashboard, sql. */
#include <sys/stat.h>

#include "../../format/version.h"
#include "../ask/command.h"
#include "../base/asset.h"
#include "../base/emit_json.h"
#include "../base/outfile.h"
#include "lake.h"
#include "question.h"
#include "../page/page_write.h"
#include "../recording/defs.h"
#include "../recording/owner_words.h"

/* collect: writes the tables of many recordings into a lake. */

/* The first operand that is an address (s3://...) and not a path of this machine; NULL: none. */
static const char *elsewhere(const struct collect_options *o)
{
	if (strstr(o->output, "://"))
		return o->output;
	for (char **file = o->files; *file; file++)
		if (strstr(*file, "://"))
			return *file;
	return NULL;
}

/* Letters, digits, and . _ - */
static bool is_good_name(const char *name)
{
	if (!*name || name[0] == '.' || strlen(name) > 100)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static int check_places(const struct collect_options *o)
{
	struct stat st;

	if (elsewhere(o))
		return say_usage("%s: collect reads and writes folders of this machine; copy "
				 "recordings here, and the lake there (aws s3 sync, for instance)",
				 elsewhere(o));
	if (o->project && !is_good_name(o->project))
		return say_usage("--project needs a name of letters, digits, . _ and -, not \"%s\"",
				 o->project);
	if (!stat(o->output, &st) && !S_ISDIR(st.st_mode))
		return say_usage("%s exists and is no folder; choose another name", o->output);
	return 0;
}

int run_collect(const struct collect_options *o, struct emit *out)
{
	struct lake_files files = { 0 };
	struct question q = { .out = out };
	int rc = check_places(o);

	if (!rc)
		rc = lake_files_find(&files, o->files);
	if (!rc) {
		question_begin(&q, QUESTION_LAKE, "collect");
		question_text(&q, "lake", o->output);
		question_text(&q, "project", o->project);
		question_number(&q, "large", o->tables != 0);
		lake_files_emit(&files, q.request);
		rc = question_ask(&q);
	}
	lake_files_free(&files);
	return rc;
}

/* compact: merges a lake's files into one for each table and month. */

/* False after an error message: it is no lake. */
static bool begin_about_lake(struct question *q, const char *what, const char *lake)
{
	if (!lake_may_be(lake))
		return false;
	question_begin(q, QUESTION_LAKE, what);
	question_text(q, "lake", lake);
	return true;
}

int run_compact(const struct compact_options *o, struct emit *out)
{
	struct question q = { .out = out };

	return begin_about_lake(&q, "compact", o->lake) ? question_ask(&q) : EXIT_UNREADABLE;
}

/* regressions: commits of a lake whose peak is higher than before. */

int run_regressions(const struct regressions_options *o, struct emit *out)
{
	struct question q = { .out = out };
	char limit[32];

	if (!begin_about_lake(&q, "regressions", o->lake))
		return EXIT_UNREADABLE;
	question_text(&q, "against", o->against);
	question_text(&q, "since", o->since);
	snprintf(limit, sizeof(limit), "%.17g", o->fail_above.amount.value);
	question_text(&q, "limit", limit);
	question_number(&q, "percent", o->fail_above.amount.percent);
	question_number(&q, "fail", o->fail_above.given);
	return question_ask(&q);
}

/* dashboard: a lake's ready questions on one page. */

struct panels {
	FILE *f;
	size_t count;
};

static void put_panel(void *ctx, struct json panel)
{
	struct panels *p = ctx;

	fputs(p->count++ ? ",\n" : "\n", p->f);
	fwrite(panel.s, 1, (size_t)(panel.end - panel.s), p->f);
}

static int fill_page(struct page_text *text, const struct dashboard_options *o, struct emit *out)
{
	struct panels p = { .f = need_stream(&text->first, &text->first_len) };
	struct question q = { .out = out, .result = put_panel, .ctx = &p };
	int rc;

	fputs("{\"tool\":\"" GMT_TOOL_VERSION "\",\"lake\":", p.f);
	emit_json_string(p.f, o->lake, strlen(o->lake));
	fputs(",\"panels\":[", p.f);
	question_begin(&q, QUESTION_LAKE, "dashboard");
	question_text(&q, "lake", o->lake);
	question_text(&q, "output", o->output);
	rc = question_ask(&q);
	fputs("]}", p.f);
	fclose(p.f);
	text->rest = need_text("{}");
	text->rest_len = 2;
	return rc;
}

static int write_dashboard(struct emit *out, struct outfile *file, const struct page_text *text)
{
	struct row_dashboard row = { .file = file->path };
	int rc = page_commit(file, text, &row.bytes);

	if (rc)
		return rc;
	emit_document(out, dashboard, &row);
	emit_line(out, "%s: %s", file->path, B(row.bytes));
	return 0;
}

int run_dashboard(const struct dashboard_options *o, struct emit *out)
{
	struct page_text text = { .kind = PAGE_LAKE, .title = o->lake };
	struct outfile file;
	int rc;

	if (!lake_may_be(o->lake))
		return EXIT_UNREADABLE;
	rc = outfile_open(&file, o->output, OUTFILE_PAGE);
	if (rc)
		return rc;
	rc = fill_page(&text, o, out);
	if (!rc)
		rc = write_dashboard(out, &file, &text);
	else
		outfile_drop(&file);
	page_text_free(&text);
	return rc;
}

/* sql: a query over a lake or over recordings. Ready questions are in views.sql. */

ASSET_FILE(views, "viewer/commands/views.sql");

#define VIEW  "\n-- view "
#define VIEWS 32

/* Finds the ready questions: "-- view NAME: MEANING" and the query behind it. Returns how many. */
static size_t find_views(struct row_sql_view views[VIEWS])
{
	const char *at = strstr(asset_views, VIEW), *next;
	size_t n = 0;

	for (; at && n < VIEWS; at = next) {
		const char *name = at + strlen(VIEW), *meaning = strchr(name, ':') + 2;
		const char *sql = strchr(meaning, '\n') + 1, *end;

		next = strstr(sql - 1, VIEW);
		end = next ? next : asset_end_views;
		while (end > sql && isspace((unsigned char)end[-1]))
			end--;
		views[n++] = (struct row_sql_view){
			.name = { name, (size_t)(meaning - 2 - name) },
			.meaning = { meaning, (size_t)(sql - 1 - meaning) },
			.sql = { sql, (size_t)(end - sql) },
		};
	}
	return n;
}

/* ---- the schema ---- */

/* SQL types that DuckDB and Spark both have. */
#define SQL_INT	   "bigint"
#define SQL_NUMBER "bigint"
#define SQL_UINT64 "bigint"
#define SQL_UINT32 "bigint"
#define SQL_UINT16 "bigint"
#define SQL_INT32  "bigint"
#define SQL_FLAG   "boolean"
#define SQL_TEXT   "varchar"
#define SQL_TIME   "timestamp"

/* Columns of every table, which stand first; month is the name of a folder. */
#define OF_ALL                                                                                   \
	{ "project", SQL_TEXT, "",                                                               \
	  "--project, or the name of the repository, or of the program's folder" },              \
		{ "day", "date", "", "2026-11-22, of the run's start, UTC" },                    \
		{ "run", SQL_TEXT, "", "start of the run, host and process of its first rank" }, \
		{ "rank", SQL_INT, "", "its rank, 0 if it says none" },                          \
		{ "month", SQL_TEXT, "", "2026-11, of the day" },                                \
		{ "process", SQL_TEXT, "",                                                       \
		  "host, number and start of the process, and its rank" },

#define COUNT(items) (sizeof(items) / sizeof(items[0]))
#define COUNT_OF_ALL COUNT(((const struct row_sql_column[]){ OF_ALL }))

#define TABLE(name, meaning)			 static const struct row_sql_column columns_##name[] = { OF_ALL
#define COLUMN(table, name, type, unit, meaning) { #name, SQL_##type, unit, meaning },
#define END(name) \
	}         \
	;
#include "lake_tables.def"

/* The same columns as in the exports. */
static const struct row_sql_column columns_allocations[] = { OF_ALL
#define COLUMN(name, kind, unit, meaning) { #name, SQL_##kind, unit, meaning },
#include "../export/export_columns.def"
};

static const struct row_sql_column columns_events[] = { OF_ALL
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) { #name, SQL_##type, unit, meaning },
#include "../export/export_event_columns.def"
};

#define SQL_TABLE(name, meaning) \
	{ #name, meaning, { COUNT(columns_##name), NULL, (void *)columns_##name } },

static const struct row_sql_table lake_tables[] = {
#define TABLE(name, meaning) SQL_TABLE(name, meaning)
#define COLUMN(...)
#define END(name)
#include "lake_tables.def"
	SQL_TABLE(allocations,
		  "A block that ever was: with --tables allocations, and of recordings.")
		SQL_TABLE(events, "An event, in order: of recordings only, not in a lake.")
};

static int print_schema(struct emit *out)
{
	struct row_sql_view views[VIEWS];
	const struct row_sql_schema row = { .tables = { COUNT(lake_tables), NULL,
							(void *)lake_tables },
					    .views = { find_views(views), NULL, views } };

	emit_document(out, sql_schema, &row);
	emit_title(out, "Tables (each has project, day, run, rank, month and process)");
	FOR_EACH (const struct row_sql_table, t, lake_tables, COUNT(lake_tables)) {
		const struct row_sql_column *own = t->columns.ctx;

		emit_line(out, "%s", "");
		emit_line(out, "%s: %s", t->name, t->meaning);
		FOR_EACH (const struct row_sql_column, c, own + COUNT_OF_ALL,
			  t->columns.count - COUNT_OF_ALL)
			emit_line(out, "  %-24s%-10s%s%s%s", c->name, c->type, c->meaning,
				  c->unit[0] ? ", " : "", c->unit);
	}
	emit_line(out, "%s", "");
	emit_title(out, "Ready questions: gpumemtrace sql \"from NAME\" LAKE");
	emit_line(out, "%s", "");
	FOR_EACH (const struct row_sql_view, v, views, row.views.count)
		emit_line(out, "  %-18.*s%.*s", (int)v->name.len, v->name.s, (int)v->meaning.len,
			  v->meaning.s);
	return 0;
}

/* ---- a query ---- */

/* files: recordings to query; NULL: the operand is a lake. */
static int ask_query(const struct sql_options *o, const struct lake_files *files, struct emit *out)
{
	struct question q = { .out = out };

	question_begin(&q, QUESTION_LAKE, "query");
	question_text(&q, "query", o->query);
	question_text(&q, "form", o->csv ? "csv" : emit_json(out) ? "json" : "text");
	question_number(&q, "screen", (double)emit_screen());
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
		return say_usage("a query and a lake are needed: gpumemtrace sql \"from runs\" "
				 "lake/; --schema lists what there is");
	if (strstr(o->lake[0], "://") || lake_is_one(o->lake[0])) {
		if (o->lake[1])
			return say_usage("%s is a lake; a query is about one lake", o->lake[0]);
		return ask_query(o, NULL, out);
	}
	return ask_recordings(o, out);
}
