/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <unistd.h>

#include "../../format/version.h"
#include "../answers/columns.h"
#include "../base/asset.h"
#include "../base/proc.h"
#include "../page/page_write.h"
#include "run_program.h"

ASSET_FILE(world, "python/gpumemtrace/_world.py");

void search_begin(struct question *q, const char *what, const char *cards)
{
	char device[PATH_MAX];

	question_begin(q, QUESTION_SEARCH, what);
	question_text(q, "world", asset_world);
	question_list(q, "environment", environ);
	question_list(q, "command", q->command);
	question_text(q, "device", library_find("libsimgpu.so", device) ? device : "");
	question_text(q, "cards", cards);
}

/* The modules that answer: names of files below python/gpumemtrace, each followed by its text; a
 * zero byte ends each of both. */
ASSET_FILE(python_modules, "build/python_modules");

static const char *const mains[] = {
	[QUESTION_SEARCH] = "search.search_main",
	[QUESTION_LAKE] = "lake.lake_perform",
	[QUESTION_RANKS] = "ranks.ranks_main",
};

/* ---- the request ---- */

void question_list(struct question *q, const char *key, char *const *words)
{
	emit_array(q->request, key);
	for (; words && *words; words++)
		emit_text(q->request, NULL, *words);
	emit_end(q->request);
}

void question_text(struct question *q, const char *key, const char *text)
{
	emit_text(q->request, key, text ? text : "");
}

void question_number(struct question *q, const char *key, double n)
{
	emit_decimal(q->request, key, n);
}

void question_begin(struct question *q, enum question_kind kind, const char *what)
{
	char own[PATH_MAX], core[PATH_MAX];

	proc_own_path(own);
	q->kind = kind;
	q->f = need_stream(&q->text, &q->len);
	q->request = emit_open(q->f, true);
	emit_object(q->request, NULL);
	emit_bytes(q->request, "modules", asset_python_modules,
		   (size_t)(asset_end_python_modules - asset_python_modules));
	question_text(q, "main", mains[kind]);
	question_text(q, "what", what);
	question_text(q, "version", GMT_TOOL_VERSION);
	question_text(q, "tool", own);
	question_text(q, "core", library_find("libgpumemtrace_core.so", core) ? core : "");
}

/* ---- parts of the answer: a number and a text ---- */

static void show_doing(UNUSED struct answer *a, UNUSED int number, const char *text)
{
	if (*text)
		say_doing(text);
	else
		say_progress_end();
}

static void print_note(UNUSED struct answer *a, UNUSED int number, const char *text)
{
	say_note("%s", text);
}

/* The first line is indented by two columns less than the others. */
static void print_sentence(struct answer *a, int indent, const char *text)
{
	char next[16];

	snprintf(next, sizeof(next), "%*s", indent, "");
	if (!emit_json(a->question->out))
		emit_paragraph(a->question->out, indent > 2 ? next + 2 : "", next, text);
}

static void print_item(struct answer *a, int number, const char *text)
{
	emit_item(a->question->out, (size_t)number, text);
}

static void end_with_error(struct answer *a, int code, const char *text)
{
	a->code = say_error(code, "%s", text);
	a->ended = true;
}

/* ---- parts of the answer: JSON ---- */

static char *text_of(struct json v)
{
	size_t room = v.s ? (size_t)(v.end - v.s) + 8 : 8;
	char *text = need_new(room);

	json_string(v, text, room);
	return text;
}

static void take_document(struct answer *a, struct json v)
{
	if (!v.s)
		return;
	emit_object(a->question->out, NULL);
	emit_members(a->question->out, v.s, (size_t)(v.end - v.s));
	emit_end(a->question->out);
}

/* A document whose first member is a list: "rows" has the list's name, each "document" is an item,
 * "rest" has the other members. */

static void take_rows(struct answer *a, struct json v)
{
	char *name = text_of(v);

	emit_object(a->question->out, NULL);
	emit_array(a->question->out, name);
	free(name);
}

static void take_rest(struct answer *a, struct json v)
{
	emit_end(a->question->out);
	emit_members(a->question->out, v.s, (size_t)(v.end - v.s));
	emit_end(a->question->out);
}

static void take_page(struct answer *a, struct json v)
{
	char *path = text_of(json_at(v, "0"));
	struct json document = json_at(v, "1");
	struct page_text page = { .kind = PAGE_SEARCH, .title = "fit" };
	struct outfile file;
	uint64_t bytes;

	if (outfile_open(&file, path, OUTFILE_PAGE)) {
		a->code = EXIT_USAGE;
	} else {
		page.first_len = (size_t)(document.end - document.s);
		page.first = need_copy(document.s, page.first_len);
		page.rest = need_text("{}");
		page.rest_len = 2;
		if (page_commit(&file, &page, &bytes))
			a->code = EXIT_UNREADABLE;
		page_text_free(&page);
	}
	free(path);
}

static void take_result(struct answer *a, struct json v)
{
	if (a->question->result)
		a->question->result(a->question->ctx, v);
}

/* The last part has the lines that are printed only if the answer is complete. */
static void take_end(struct answer *a, struct json v)
{
	struct json lines = json_member(v, "lines"), line = json_first(lines, NULL);

	take_document(a, json_member(v, "document"));
	for (; line.s; line = json_next(lines, line, NULL)) {
		char *text = text_of(line);

		emit_line(a->question->out, "%s", text);
		free(text);
	}
	a->code = (int)json_unsigned(json_member(v, "code"));
	a->ended = true;
}

/* ---- tables ---- */

struct row_cells {
	struct words cells;
};

static const char *cell_word(const void *ctx, size_t i)
{
	return ((const struct answer *)ctx)->cells[i];
}

static void free_cells(struct answer *a)
{
	for (size_t i = 0; i < ANSWER_COLUMNS; i++) {
		free(a->cells[i]);
		a->cells[i] = NULL;
	}
}

static bool next_cells(const void *rows, size_t *i, void *row)
{
	struct answer *a = *(struct answer *const *)rows;
	struct json cells = json_first(a->rows, NULL), cell;
	size_t n = 0;

	for (size_t k = 0; k < *i && cells.s; k++)
		cells = json_next(a->rows, cells, NULL);
	if (!cells.s)
		return false;
	++*i;
	free_cells(a);
	for (cell = json_first(cells, NULL); cell.s && n < ANSWER_COLUMNS;
	     cell = json_next(cells, cell, NULL))
		a->cells[n++] = text_of(cell);
	((struct row_cells *)row)->cells = (struct words){ n, cell_word, a };
	return true;
}

/* Columns as [title, gap, width], and rows of texts. */
static void take_table(struct answer *a, struct json v)
{
	static const struct member member = { NULL, MEMBER_WORDS, 0, 0, NULL };
	static const struct document table = { "table", &member, 1, next_cells };
	struct text_column columns[ANSWER_COLUMNS];
	char *titles[ANSWER_COLUMNS];
	struct json all = json_member(v, "columns"), c;
	size_t n = 0;

	for (c = json_first(all, NULL); c.s && n < ANSWER_COLUMNS; c = json_next(all, c, NULL)) {
		titles[n] = text_of(json_at(c, "0"));
		columns[n] = (struct text_column){ .title = titles[n],
						   .gap = (unsigned)json_unsigned(json_at(c, "1")),
						   .width = (int)json_signed(json_at(c, "2")),
						   .item = n };
		n++;
	}
	a->rows = json_member(v, "rows");
	columns_write(a->question->out, &table, columns, n, &a, 0);
	free_cells(a);
	while (n)
		free(titles[--n]);
}

/* ---- line by line ---- */

/* print: for a text; say: for a number and a text; take: for JSON. */
static const struct {
	const char *name;
	void (*print)(struct emit *e, const char *format, ...);
	void (*say)(struct answer *a, int number, const char *text);
	void (*take)(struct answer *a, struct json v);
} parts[] = {
	{ "doing", .say = show_doing },	  { "note", .say = print_note },
	{ "title", .print = emit_title }, { "line", .print = emit_line },
	{ "raw", .print = emit_raw },	  { "sentence", .say = print_sentence },
	{ "item", .say = print_item },	  { "error", .say = end_with_error },
	{ "table", .take = take_table },  { "document", .take = take_document },
	{ "rows", .take = take_rows },	  { "rest", .take = take_rest },
	{ "page", .take = take_page },	  { "result", .take = take_result },
	{ "end", .take = take_end },
};

static void take_part_of(struct answer *a, size_t i, struct json v)
{
	char *text;

	if (parts[i].take) {
		parts[i].take(a, v);
		return;
	}
	text = text_of(json_at(v, "1"));
	if (parts[i].print)
		parts[i].print(a->question->out, "%s", text);
	else
		parts[i].say(a, (int)json_unsigned(json_at(v, "0")), text);
	free(text);
}

/* A line is an object with one member. */
bool answer_take(struct answer *a, const char *line, size_t len)
{
	struct json key, v = json_text(line, len), value = json_first(v, &key);

	if (v.s != line || v.end != line + len - 1 || *v.end != '\n' || a->ended)
		return false;
	for (size_t i = 0; value.s && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (json_is(key, parts[i].name)) {
			if (a->code < 0)
				take_part_of(a, i, value);
			return a->any = true;
		}
	return false;
}
