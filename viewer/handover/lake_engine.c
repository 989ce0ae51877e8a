/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_engine.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "handover.h"
#include "../base/need.h"
#include "../base/say.h"
#include "lake_request.h"

enum { NO_DUCKDB = 96 };

struct answer {
	const struct lake_question *q;
	size_t columns, rows;
	bool begun, whole;
	int code;
	char error[1024];
};

/* ---- the answer, line by line ---- */

/* An error of DuckDB, or a sentence of our own. */
static bool take_error(struct answer *a, struct json v)
{
	struct json error = json_member(v, "error"), sentence = json_member(v, "sentence");
	size_t n = error.s ? (size_t)snprintf(a->error, sizeof(a->error), "DuckDB: ") : 0;

	json_string(error.s ? error : sentence, a->error + n, sizeof(a->error) - n);
	a->code = json_unsigned(json_member(v, "code")) == EXIT_UNREADABLE ? EXIT_UNREADABLE
									   : EXIT_USAGE;
	return true;
}

static bool take_note(struct json note)
{
	char text[PATH_MAX + 1024];

	say_note("%s", json_string(note, text, sizeof(text)));
	return true;
}

/* A line of text, or a document. */
static bool take_output(const struct answer *a, struct json line, struct json document)
{
	size_t room = line.s ? (size_t)(line.end - line.s) + 8 : 8;
	char *text = need_new(room);

	if (line.s)
		emit_line(a->q->out, "%s", json_string(line, text, room));
	free(text);
	if (!document.s)
		return true;
	emit_object(a->q->out, NULL);
	emit_members(a->q->out, document.s, (size_t)(document.end - document.s));
	emit_end(a->q->out);
	return true;
}

/* Or the last line: how many rows there were, or an error. False: it is none of them. */
static bool take_object(struct answer *a, struct json v)
{
	struct json note = json_member(v, "note"), rows = json_member(v, "rows");
	struct json line = json_member(v, "line"), document = json_member(v, "document");

	if (note.s)
		return take_note(note);
	if (a->q->out && (line.s || document.s))
		return take_output(a, line, document);
	if (json_member(v, "error").s || json_member(v, "sentence").s)
		return take_error(a, v);
	a->whole = a->begun && rows.s && json_unsigned(rows) == a->rows;
	a->code = (int)json_unsigned(json_member(v, "code"));
	return a->whole;
}

static bool take_line(void *ctx, const char *line, size_t len)
{
	struct answer *a = ctx;
	struct json v = json_text(line, len);

	if (v.s != line || v.end != line + len - 1 || *v.end != '\n' || a->whole || a->error[0])
		return false;
	if (*v.s == '{')
		return take_object(a, v);
	if (*v.s != '[' || (a->begun && json_count(v) != a->columns))
		return false;
	if (a->begun) {
		a->rows++;
		if (a->q->row)
			a->q->row(a->q->ctx, v);
		return true;
	}
	a->begun = true;
	a->columns = json_count(v);
	if (a->q->columns)
		a->q->columns(a->q->ctx, v);
	return true;
}

/* ---- the result ---- */

static int judge(const struct answer *a, const char *python, const struct handover *h)
{
	if (a->whole && !h->foreign)
		return a->code;
	if (a->error[0] && !h->foreign)
		return say_error(a->code, "%s", a->error);
	if (h->foreign)
		return say_error(EXIT_UNREADABLE,
				 "the answer of DuckDB in %s cannot be read after %zu rows%s",
				 python, a->rows, h->words);
	if (WIFSIGNALED(h->status))
		return say_error(EXIT_UNREADABLE, "DuckDB was ended by signal %d (%s)",
				 WTERMSIG(h->status), strsignal(WTERMSIG(h->status)));
	return say_error(EXIT_UNREADABLE,
			 "%s ended with code %d before the answer of DuckDB was complete%s", python,
			 WEXITSTATUS(h->status), h->words);
}

static bool lacks_duckdb(const struct answer *a, const struct handover *h)
{
	return !a->begun && !a->error[0] && !h->foreign && WIFEXITED(h->status) &&
	       (WEXITSTATUS(h->status) == NO_DUCKDB ||
		WEXITSTATUS(h->status) == HANDOVER_NOT_STARTED);
}

/* -1: this Python has no DuckDB, or is not there. */
static int ask_python(const struct lake_question *q, const char *python,
		      const struct bytes *request)
{
	static const char *const flags[] = { NULL };
	struct answer a = { .q = q };
	struct handover h = { .flags = flags, .request = request, .take = take_line, .ctx = &a };
	int rc = handover_ask(&h, python);

	if (rc)
		return rc;
	if (handover_interrupted())
		return EXIT_UNREADABLE;
	return lacks_duckdb(&a, &h) ? -1 : judge(&a, python, &h);
}

int lake_ask(const struct lake_question *q)
{
	struct sigaction old[HANDOVER_SIGNALS];
	struct bytes request = { 0 };
	const char *python;
	int rc = -1, signal;

	lake_request(&request, q);
	handover_listen(old, false);
	for (size_t i = 0; rc < 0 && (python = python_place(i)); i++)
		rc = ask_python(q, python, &request);
	signal = handover_stop(old);
	if (signal)
		raise(signal);
	bytes_free(&request);
	if (rc >= 0)
		return rc;
	return say_error(EXIT_USAGE,
			 "this runs in DuckDB, and neither python3 nor python on the PATH has it: "
			 "pip install duckdb (or name a Python that has "
			 "it: GPUMEMTRACE_PYTHON=PATH)");
}

bool lake_is_one(const char *path)
{
	char table[PATH_MAX];
	struct stat st;

	return snprintf(table, sizeof(table), "%s/ranks", path) < PATH_MAX && !stat(table, &st) &&
	       S_ISDIR(st.st_mode);
}

bool lake_may_be(const char *path)
{
	return strstr(path, "://") || lake_is_one(path) ||
	       !say_error(EXIT_UNREADABLE,
			  "%s is no lake: gpumemtrace collect RUNS -o LAKE makes one", path);
}
