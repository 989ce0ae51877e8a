/* SPDX-License-Identifier: Apache-2.0 */
#include "search_engine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "handover.h"
#include "../base/need.h"
#include "../base/proc.h"
#include "../base/say.h"
#include "../documents/columns.h"
#include "../page/page_write.h"
#include "../stacks/owners.h"
#include "../../format/version.h"

ASSET_FILE(world, "python/gpumemtrace/_world.py");
#define MODULE(name) ASSET_FILE(name, "python/gpumemtrace/search/" #name ".py");
#include "search_modules.def"
#undef MODULE

/* Each imports only what stands above it. */
static const struct handover_module modules[] = {
#define MODULE(name) { #name, asset_##name },
#include "search_modules.def"
#undef MODULE
};
#define MODULES (sizeof(modules) / sizeof(modules[0]))

#define MOST_COLUMNS 16
#define INTERRUPTED  130

/* code: -1 before the end. */
struct answer {
	struct search *search;
	int code;
	struct json rows; /* of the table that is printed */
	char *cells[MOST_COLUMNS];
};

/* ---- the request ---- */

void search_list(struct search *s, const char *key, char *const *words)
{
	emit_array(s->request, key);
	for (; words && *words; words++)
		emit_text(s->request, NULL, *words);
	emit_end(s->request);
}

void search_text(struct search *s, const char *key, const char *text)
{
	emit_text(s->request, key, text);
}

void search_number(struct search *s, const char *key, double n)
{
	emit_decimal(s->request, key, n);
}

void search_begin(struct search *s, const char *what)
{
	char own[PATH_MAX];

	proc_own_path(own);
	s->f = need_stream(&s->text, &s->len);
	handover_modules(s->f, "gpumemtrace_search", modules, MODULES);
	fputs(", \"search\": ", s->f);
	s->request = emit_open(s->f, true);
	emit_object(s->request, NULL);
	emit_text(s->request, "what", what);
	emit_text(s->request, "version", GMT_TOOL_VERSION);
	emit_text(s->request, "tool", own);
	emit_text(s->request, "world", asset_world);
	search_list(s, "environment", environ);
	search_list(s, "command", s->command);
}

void search_cards(struct search *s, const struct card *cards, size_t count)
{
	emit_array(s->request, "cards");
	for (size_t i = 0; i < count; i++) {
		emit_object(s->request, NULL);
		emit_text(s->request, "name", cards[i].name);
		emit_number(s->request, "memory", cards[i].memory);
		emit_number(s->request, "context", cards[i].context);
		emit_signed(s->request, "major", cards[i].major);
		emit_signed(s->request, "minor", cards[i].minor);
		emit_signed(s->request, "code", cards[i].code);
		emit_signed(s->request, "processors", cards[i].processors);
		emit_end(s->request);
	}
	emit_end(s->request);
}

/* ---- the answer ---- */

static char *text_of(struct json v)
{
	size_t room = v.s ? (size_t)(v.end - v.s) + 8 : 8;
	char *text = need_new(room);

	json_string(v, text, room);
	return text;
}

static void take_doing(struct answer *a, struct json v)
{
	char *text = text_of(v);

	(void)a;
	if (*text)
		say_doing(text);
	else
		say_progress_end();
	free(text);
}

static void take_note(struct answer *a, struct json v)
{
	char *text = text_of(v);

	(void)a;
	say_note("%s", text);
	free(text);
}

static void take_title(struct answer *a, struct json v)
{
	char *text = text_of(v);

	emit_title(a->search->out, "%s", text);
	free(text);
}

static void take_line(struct answer *a, struct json v)
{
	char *text = text_of(v);

	emit_line(a->search->out, "%s", text);
	free(text);
}

static void take_sentence(struct answer *a, struct json v)
{
	char *next = text_of(json_at(v, "0")), *text = text_of(json_at(v, "1"));

	emit_sentence(a->search->out, next, "%s", text);
	free(next);
	free(text);
}

static void take_item(struct answer *a, struct json v)
{
	char *text = text_of(json_at(v, "1"));

	emit_item(a->search->out, json_unsigned(json_at(v, "0")), text);
	free(text);
}

static void take_document(struct answer *a, struct json v)
{
	emit_object(a->search->out, NULL);
	emit_members(a->search->out, v.s, (size_t)(v.end - v.s));
	emit_end(a->search->out);
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
		page.rest = need_copy("{}", 2);
		page.rest_len = 2;
		if (page_commit(&file, &page, &bytes))
			a->code = EXIT_UNREADABLE;
		page_text_free(&page);
	}
	free(path);
}

static void take_run(struct answer *a, struct json v)
{
	if (a->search->run)
		a->search->run(a->search->ctx, v);
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
	columns_write(a->search->out, &table, columns, n, &a, 0);
	free_cells(a);
	while (n)
		free(titles[--n]);
}

/* ---- line by line ---- */

static void take_end(struct answer *a, struct json v)
{
	a->code = (int)json_unsigned(v);
}

/* Of one sentence, with its exit code. */
static void take_error(struct answer *a, struct json v)
{
	char *text = text_of(json_at(v, "1"));

	a->code = say_error((int)json_unsigned(json_at(v, "0")), "%s", text);
	free(text);
}

static const struct {
	const char *name;
	void (*take)(struct answer *a, struct json v);
} parts[] = { { "doing", take_doing }, { "note", take_note },	      { "title", take_title },
	      { "line", take_line },   { "sentence", take_sentence }, { "item", take_item },
	      { "table", take_table }, { "document", take_document }, { "page", take_page },
	      { "run", take_run },     { "error", take_error },	      { "end", take_end } };

static bool take_part(void *ctx, const char *line, size_t len)
{
	struct answer *a = ctx;
	struct json key, v = json_text(line, len), value = json_first(v, &key);

	for (size_t i = 0; value.s && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (json_is(key, parts[i].name)) {
			if (a->code < 0)
				parts[i].take(a, value);
			return true;
		}
	return false;
}

/* ---- the process ---- */

static int judge(const struct answer *a, const struct handover *h, const char *python)
{
	if (a->code >= 0 && !h->foreign)
		return a->code;
	if (handover_interrupted())
		return INTERRUPTED;
	if (WIFSIGNALED(h->status) && !h->foreign)
		return say_error(EXIT_UNREADABLE,
				 "%s, which runs the search, was ended by signal %d", python,
				 WTERMSIG(h->status));
	return say_error(EXIT_UNREADABLE, "%s, which runs the search, %s%s", python,
			 h->foreign ? "gave an answer that cannot be read" : "ended before its end",
			 h->words);
}

/* -1: it is no Python that will do. */
static int ask_python(struct search *s, const struct bytes *request, const char *python)
{
	static const char *const flags[] = { "-I", "-S", "-X", "utf8", NULL };
	struct answer a = { .search = s, .code = -1 };
	struct handover h = { .flags = flags, .request = request, .take = take_part, .ctx = &a };
	int rc = handover_ask(&h, python);

	say_progress_end();
	if (rc)
		return rc;
	return h.begun || handover_interrupted() ? judge(&a, &h, python) : -1;
}

/* The program's own is the last choice. */
static const char *own_python(const struct search *s)
{
	bool is_python = !strncmp(owners_base(s->command[0]), "python", 6);

	return is_python ? s->command[0] : NULL;
}

int search_perform(struct search *s)
{
	struct sigaction old[HANDOVER_SIGNALS];
	struct bytes request = { 0 };
	const char *python;
	int rc = -1;

	emit_close(s->request);
	fputc('}', s->f);
	fclose(s->f);
	bytes_add(&request, s->text, s->len + 1);
	free(s->text);
	handover_listen(old, true);
	for (size_t i = 0; rc < 0 && (python = python_place(i)); i++)
		rc = ask_python(s, &request, python);
	if (rc < 0 && own_python(s))
		rc = ask_python(s, &request, own_python(s));
	handover_stop(old);
	bytes_free(&request);
	if (rc >= 0)
		return rc;
	return say_error(EXIT_USAGE,
			 "the runs are started by Python " PYTHON_LEAST
			 " or later, and neither python3 nor python on the PATH is that (name "
			 "another: GPUMEMTRACE_PYTHON=PATH)");
}
