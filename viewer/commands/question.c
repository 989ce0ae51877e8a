/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <sys/wait.h>
#include <unistd.h>

#include "../../format/version.h"
#include "../answers/columns.h"
#include "../base/asset.h"
#include "../base/proc.h"
#include "../page/page_write.h"
#include "../recording/owners.h"

ASSET_FILE(world, "python/gpumemtrace/_world.py");

void search_begin(struct question *q, const char *what, const struct card *cards, size_t count)
{
	question_begin(q, QUESTION_SEARCH, what);
	question_text(q, "world", asset_world);
	question_list(q, "environment", environ);
	question_list(q, "command", q->command);
	emit_array(q->request, "cards");
	for (size_t i = 0; i < count; i++) {
		emit_object(q->request, NULL);
		emit_text(q->request, "name", cards[i].name);
		emit_number(q->request, "memory", cards[i].memory);
		emit_number(q->request, "context", cards[i].context);
		emit_signed(q->request, "major", cards[i].major);
		emit_signed(q->request, "minor", cards[i].minor);
		emit_signed(q->request, "code", cards[i].code);
		emit_signed(q->request, "processors", cards[i].processors);
		emit_end(q->request);
	}
	emit_end(q->request);
}

#define LAKE(name)   ASSET_FILE(name, "python/gpumemtrace/lake/" #name ".py");
#define SEARCH(name) ASSET_FILE(name, "python/gpumemtrace/search/" #name ".py");
#include "python_modules.def"

static const struct {
	enum question_kind kind;
	const char *name, *text;
} modules[] = {
#define LAKE(name)   { QUESTION_LAKE, #name, asset_##name },
#define SEARCH(name) { QUESTION_SEARCH, #name, asset_##name },
#include "python_modules.def"
};

#define MOST_COLUMNS 16
#define INTERRUPTED  130
#define UNFIT	     96 /* exit code of a Python that lacks a package */

static const char *const alone[] = { "-I", "-S", "-X", "utf8", NULL }, *const usual[] = { NULL };

static const struct {
	const char *package;
	const char *const *flags; /* of Python */
	const char *who;	  /* answers, in sentences */
	const char *missing;	  /* the sentence where no Python will do */
} kinds[] = {
	[QUESTION_SEARCH] = { "gpumemtrace_search", alone, "the search",
			      "the runs are started by Python " PYTHON_LEAST
			      " or later, and neither python3 nor python on the PATH is that (name "
			      "another: GPUMEMTRACE_PYTHON=PATH)" },
	[QUESTION_LAKE] = { "gpumemtrace_lake", usual, "DuckDB",
			    "this runs in DuckDB, and neither python3 nor python on the PATH has "
			    "it: pip install duckdb (or name a Python that has it: "
			    "GPUMEMTRACE_PYTHON=PATH)" },
};

/* code: -1 before the end. */
struct answer {
	struct question *question;
	int code;
	bool any, ended;  /* a part came, the last one came */
	struct json rows; /* of the table that is printed */
	char *cells[MOST_COLUMNS];
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

static void put_modules(struct question *q)
{
	emit_text(q->request, "package", kinds[q->kind].package);
	emit_array(q->request, "modules");
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (modules[i].kind != q->kind)
			continue;
		emit_array(q->request, NULL);
		emit_text(q->request, NULL, modules[i].name);
		emit_text(q->request, NULL, modules[i].text);
		emit_end(q->request);
	}
	emit_end(q->request);
}

void question_begin(struct question *q, enum question_kind kind, const char *what)
{
	char own[PATH_MAX];

	proc_own_path(own);
	q->kind = kind;
	q->f = need_stream(&q->text, &q->len);
	q->request = emit_open(q->f, true);
	emit_object(q->request, NULL);
	put_modules(q);
	question_text(q, "what", what);
	question_text(q, "version", GMT_TOOL_VERSION);
	question_text(q, "tool", own);
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

static void print_title(struct answer *a, UNUSED int number, const char *text)
{
	emit_title(a->question->out, "%s", text);
}

static void print_text_line(struct answer *a, UNUSED int number, const char *text)
{
	emit_line(a->question->out, "%s", text);
}

static void print_unchanged(struct answer *a, UNUSED int number, const char *text)
{
	emit_raw(a->question->out, "%s", text);
}

static void print_sentence(struct answer *a, int indent, const char *text)
{
	char next[16];

	snprintf(next, sizeof(next), "%*s", indent, "");
	emit_sentence(a->question->out, next, "%s", text);
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

static void take_page(struct answer *a, struct json v)
{
	char *path = text_of(json_at(v, "0"));
	struct json document = json_at(v, "1");
	struct page_text page = { .kind = PAGE_SEARCH, .title = "fit" };
	struct outfile file;
	uint64_t bytes;

	if (outfile_open(&file, path, "<!doctype html>\n<!-- SPDX", "a page of this tool")) {
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

/* What must not be printed unless the answer is whole comes with its end. */
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
	for (size_t i = 0; i < MOST_COLUMNS; i++) {
		free(a->cells[i]);
		a->cells[i] = NULL;
	}
}

static enum rows_next next_cells(const void *rows, size_t i, void *row)
{
	struct answer *a = *(struct answer *const *)rows;
	struct json cells = json_first(a->rows, NULL), cell;
	size_t n = 0;

	while (i-- && cells.s)
		cells = json_next(a->rows, cells, NULL);
	if (!cells.s)
		return ROWS_END;
	free_cells(a);
	for (cell = json_first(cells, NULL); cell.s && n < MOST_COLUMNS;
	     cell = json_next(cells, cell, NULL))
		a->cells[n++] = text_of(cell);
	((struct row_cells *)row)->cells = (struct words){ n, cell_word, a };
	return ROWS_ROW;
}

/* Columns as [title, gap, width], and rows of texts. */
static void take_table(struct answer *a, struct json v)
{
	static const struct member member = { NULL, MEMBER_WORDS, 0, 0, NULL };
	static const struct document table = { "table", &member, 1, next_cells };
	struct text_column columns[MOST_COLUMNS];
	char *titles[MOST_COLUMNS];
	struct json all = json_member(v, "columns"), c;
	size_t n = 0;

	for (c = json_first(all, NULL); c.s && n < MOST_COLUMNS; c = json_next(all, c, NULL)) {
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

static const struct {
	const char *name;
	void (*say)(struct answer *a, int number, const char *text);
	void (*take)(struct answer *a, struct json v);
} parts[] = {
	{ "doing", show_doing, NULL },	  { "note", print_note, NULL },
	{ "title", print_title, NULL },	  { "line", print_text_line, NULL },
	{ "raw", print_unchanged, NULL }, { "sentence", print_sentence, NULL },
	{ "item", print_item, NULL },	  { "error", end_with_error, NULL },
	{ "table", NULL, take_table },	  { "document", NULL, take_document },
	{ "page", NULL, take_page },	  { "result", NULL, take_result },
	{ "end", NULL, take_end },
};

static void take_part_of(struct answer *a, size_t i, struct json v)
{
	char *text;

	if (!parts[i].say) {
		parts[i].take(a, v);
		return;
	}
	text = text_of(json_at(v, "1"));
	parts[i].say(a, (int)json_unsigned(json_at(v, "0")), text);
	free(text);
}

/* A line is an object with one member. */
static bool take_part(void *ctx, const char *line, size_t len)
{
	struct answer *a = ctx;
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

/* ---- the process ---- */

static int judge(const struct answer *a, const struct handover *h, const char *python)
{
	const char *who = kinds[a->question->kind].who;

	if (a->code >= 0 && !h->foreign)
		return a->code;
	if (handover_interrupted())
		return INTERRUPTED;
	if (h->foreign)
		return say_error(EXIT_UNREADABLE, "the answer of %s in %s cannot be read%s", who,
				 python, h->words);
	if (WIFSIGNALED(h->status))
		return say_error(EXIT_UNREADABLE, "%s in %s was ended by signal %d (%s)", who,
				 python, WTERMSIG(h->status), strsignal(WTERMSIG(h->status)));
	return say_error(EXIT_UNREADABLE,
			 "%s ended with code %d before the answer of %s was complete%s", python,
			 WEXITSTATUS(h->status), who, h->words);
}

/* Whether another Python may do: this one is not there, too old, or lacks a package. */
static bool is_unfit(const struct answer *a, const struct handover *h)
{
	int code = WIFEXITED(h->status) ? WEXITSTATUS(h->status) : -1;

	if (a->any || h->foreign || handover_interrupted())
		return false;
	return code == UNFIT || code == HANDOVER_NOT_STARTED ||
	       (!h->begun && a->question->kind == QUESTION_SEARCH);
}

/* -1: it is no Python that will do. */
static int ask_python(struct question *q, const struct bytes *request, const char *python)
{
	struct answer a = { .question = q, .code = -1 };
	struct handover h = {
		.flags = kinds[q->kind].flags, .request = request, .take = take_part, .ctx = &a
	};
	int rc = handover_ask(&h, python);

	say_progress_end();
	if (rc)
		return rc;
	return is_unfit(&a, &h) ? -1 : judge(&a, &h, python);
}

/* The Python of the program itself is the last choice. */
static const char *own_python(const struct question *q)
{
	bool is_python = q->command && !strncmp(owners_base(q->command[0]), "python", 6);

	return is_python ? q->command[0] : NULL;
}

/* A search notes what it found before it ends; a lake has removed what was half done, and the
 * command ends by the signal. */
static int ask_pythons(struct question *q, const struct bytes *request)
{
	struct sigaction old[HANDOVER_SIGNALS];
	const char *python;
	int rc = -1, signal;

	handover_listen(old, q->kind == QUESTION_SEARCH);
	for (size_t i = 0; rc < 0 && (python = python_place(i)); i++)
		rc = ask_python(q, request, python);
	if (rc < 0 && own_python(q))
		rc = ask_python(q, request, own_python(q));
	signal = handover_stop(old);
	if (signal && q->kind == QUESTION_LAKE)
		raise(signal);
	return rc;
}

int question_ask(struct question *q)
{
	struct bytes request = { 0 };
	int rc;

	emit_close(q->request);
	fclose(q->f);
	bytes_add(&request, q->text, q->len);
	free(q->text);
	rc = ask_pythons(q, &request);
	bytes_free(&request);
	return rc >= 0 ? rc : say_error(EXIT_USAGE, "%s", kinds[q->kind].missing);
}
