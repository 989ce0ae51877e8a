/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit_json.h"
#include "human.h"
#include "need.h"

#define LABEL 18 /* columns of a key in text */

/* A table that waits for its last row, so that its columns can be aligned (text only). */
struct table {
	const struct emit_column *columns;
	size_t count, at;
	char **cells;
	size_t filled, room;
	size_t gap; /* spaces to print before the next text of the row */
};

struct emit {
	FILE *f;
	bool json, bold;
	char *close; /* what ends each open object or array */
	size_t depth, room;
	bool first; /* nothing yet in the innermost one */
	uint64_t time_zero;
	struct table table;
};

struct emit *emit_open(FILE *f, bool json)
{
	struct emit *e = need_new(sizeof(*e));
	const char *no = getenv("NO_COLOR");

	e->f = f;
	e->json = json;
	e->bold = !json && isatty(fileno(f)) && !(no && *no);
	e->first = true;
	return e;
}

struct emit *emit_like(const struct emit *e, FILE *f)
{
	struct emit *other = emit_open(f, e->json);

	other->bold = e->bold;
	return other;
}

int emit_close(struct emit *e)
{
	int rc;

	while (e->depth)
		emit_end(e);
	rc = ferror(e->f) | fflush(e->f);
	free(e->table.cells);
	free(e->close);
	free(e);
	return rc;
}

bool emit_json(const struct emit *e)
{
	return e->json;
}

void emit_time_zero(struct emit *e, uint64_t ns)
{
	e->time_zero = ns;
}

static void member(struct emit *e, const char *key)
{
	if (!e->first)
		fputc(',', e->f);
	e->first = false;
	if (key) {
		emit_json_string(e->f, key, strlen(key));
		fputc(':', e->f);
	}
}

static void open_level(struct emit *e, const char *key, const char *pair)
{
	if (!e->json)
		return;
	member(e, key);
	fputc(pair[0], e->f);
	e->close = need_grow(e->close, &e->room, e->depth, sizeof(*e->close));
	e->close[e->depth++] = pair[1];
	e->first = true;
}

void emit_object(struct emit *e, const char *key)
{
	open_level(e, key, "{}");
}

void emit_array(struct emit *e, const char *key)
{
	open_level(e, key, "[]");
}

/* The document is complete; another may follow. */
static void end_document(struct emit *e)
{
	if (e->json && !e->first)
		fputc('\n', e->f);
	e->first = true;
}

void emit_end(struct emit *e)
{
	if (!e->depth)
		return;
	fputc(e->close[--e->depth], e->f);
	e->first = false;
	if (!e->depth)
		end_document(e);
}

void emit_members(struct emit *e, const char *s, size_t len)
{
	if (!e->json || len <= 2)
		return;
	member(e, NULL);
	fwrite(s + 1, 1, len - 2, e->f);
}

/* Text: the key, padded. JSON: the key. */
static void label(struct emit *e, const char *key)
{
	size_t len;

	if (e->json) {
		member(e, key);
		return;
	}
	len = strlen(key);
	fprintf(e->f, "%s%*s", key, len < LABEL ? (int)(LABEL - len) : 1, "");
}

static void finish(struct emit *e)
{
	if (!e->json)
		fputc('\n', e->f);
}

void emit_number(struct emit *e, const char *key, uint64_t n)
{
	label(e, key);
	fprintf(e->f, "%" PRIu64, n);
	finish(e);
}

void emit_signed(struct emit *e, const char *key, int64_t n)
{
	label(e, key);
	fprintf(e->f, "%" PRId64, n);
	finish(e);
}

void emit_decimal(struct emit *e, const char *key, double n)
{
	label(e, key);
	fprintf(e->f, "%.10g", n);
	finish(e);
}

void emit_flag(struct emit *e, const char *key, bool b)
{
	label(e, key);
	fputs(e->json ? (b ? "true" : "false") : (b ? "yes" : "no"), e->f);
	finish(e);
}

void emit_bytes(struct emit *e, const char *key, const char *s, size_t len)
{
	label(e, key);
	if (e->json)
		emit_json_string(e->f, s, len);
	else
		emit_plain_string(e->f, s, len);
	finish(e);
}

void emit_text(struct emit *e, const char *key, const char *s)
{
	emit_bytes(e, key, s, strlen(s));
}

bool emit_colour(const struct emit *e)
{
	return e->bold;
}

static void print_plain(struct emit *e, const char *format, va_list args)
{
	char *text;
	int len = vasprintf(&text, format, args);

	if (len < 0)
		return;
	while (len && text[len - 1] == ' ')
		len--;
	emit_plain_string(e->f, text, (size_t)len);
	free(text);
}

void emit_line(struct emit *e, const char *format, ...)
{
	va_list args;

	if (e->json)
		return;
	va_start(args, format);
	print_plain(e, format, args);
	va_end(args);
	fputc('\n', e->f);
}

void emit_raw(struct emit *e, const char *format, ...)
{
	va_list args;

	if (e->json)
		return;
	va_start(args, format);
	vfprintf(e->f, format, args);
	va_end(args);
}

void emit_title(struct emit *e, const char *format, ...)
{
	va_list args;

	if (e->json)
		return;
	fputs(e->bold ? "\033[1m" : "", e->f);
	va_start(args, format);
	print_plain(e, format, args);
	va_end(args);
	fputs(e->bold ? "\033[0m\n" : "\n", e->f);
}

void emit_table(struct emit *e, const char *key, const struct emit_column *columns, size_t count)
{
	emit_array(e, key);
	e->table.columns = columns;
	e->table.count = count;
	e->table.at = e->table.filled = 0;
}

static void keep(struct emit *e, const char *s, size_t len)
{
	struct table *t = &e->table;

	t->cells = need_grow(t->cells, &t->room, t->filled, sizeof(*t->cells));
	t->cells[t->filled++] = need_copy(s, len);
}

/* The column of the next cell, and in JSON what must stand before it. */
static const struct emit_column *next_column(struct emit *e)
{
	struct table *t = &e->table;
	const struct emit_column *c = &t->columns[t->at];

	if (t->at == 0)
		emit_object(e, NULL);
	t->at = (t->at + 1) % t->count;
	if (e->json && c->key)
		member(e, c->key);
	return c;
}

static void row_end(struct emit *e)
{
	if (e->json && e->table.at == 0)
		emit_end(e);
}

static const char *format_cell(const struct emit *e, enum emit_format format, uint64_t n,
			       char buf[HUMAN_MAX])
{
	if (format == EMIT_SIZE)
		return human_bytes(buf, n);
	if (format == EMIT_TIME)
		return human_seconds(buf, n > e->time_zero ? n - e->time_zero : 0);
	if (format == EMIT_HEX)
		snprintf(buf, HUMAN_MAX, "0x%" PRIx64, n);
	else if (format == EMIT_SIGNED)
		snprintf(buf, HUMAN_MAX, "%" PRId64, (int64_t)n);
	else
		snprintf(buf, HUMAN_MAX, "%" PRIu64, n);
	return buf;
}

void emit_cell(struct emit *e, uint64_t n)
{
	const struct emit_column *c = next_column(e);
	char buf[HUMAN_MAX];

	if (e->json && c->key)
		fprintf(e->f, c->format == EMIT_SIGNED ? "%" PRId64 : "%" PRIu64, n);
	else if (!e->json)
		keep(e, format_cell(e, c->format, n, buf),
		     strlen(format_cell(e, c->format, n, buf)));
	row_end(e);
}

void emit_cell_text(struct emit *e, const char *s, size_t len)
{
	const struct emit_column *c = next_column(e);

	if (e->json && c->key)
		emit_json_string(e->f, s, len);
	else if (!e->json)
		keep(e, s, len);
	row_end(e);
}

static size_t column_width(const struct table *t, size_t c)
{
	size_t width = strlen(t->columns[c].title);

	for (size_t i = c; i < t->filled; i += t->count) {
		size_t w = emit_plain_width(t->cells[i], strlen(t->cells[i]));

		width = w > width ? w : width;
	}
	return width;
}

/* Spaces are printed only when something follows them on the line. */
static void print_cell(struct emit *e, size_t c, size_t width, const char *s)
{
	struct table *t = &e->table;
	size_t pad = width - emit_plain_width(s, strlen(s));
	bool left = t->columns[c].format == EMIT_TEXT;

	t->gap += 2 + (left ? 0 : pad);
	if (*s) {
		fprintf(e->f, "%*s", (int)t->gap, "");
		emit_plain_string(e->f, s, strlen(s));
		t->gap = 0;
	}
	t->gap += left ? pad : 0;
}

static void end_row(struct emit *e)
{
	fputc('\n', e->f);
	e->table.gap = 0;
}

void emit_table_end(struct emit *e)
{
	struct table *t = &e->table;
	size_t widths[32];

	if (e->json) {
		emit_end(e);
		return;
	}
	for (size_t c = 0; c < t->count; c++)
		widths[c] = t->columns[c].title ? column_width(t, c) : 0;
	for (size_t c = 0; c < t->count; c++)
		if (t->columns[c].title)
			print_cell(e, c, widths[c], t->columns[c].title);
	for (size_t i = 0; i < t->filled; i++) {
		size_t c = i % t->count;

		if (c == 0)
			end_row(e);
		if (t->columns[c].title)
			print_cell(e, c, widths[c], t->cells[i]);
		free(t->cells[i]);
	}
	end_row(e);
	t->filled = 0;
}
