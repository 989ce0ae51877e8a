/* SPDX-License-Identifier: Apache-2.0 */
#include "sql_rows.h"

#include <stdlib.h>
#include <string.h>

#include "../base/emit_json.h"
#include "../base/ending.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../stacks/owner_words.h"

#define WIDEST 60 /* of a cell, where a terminal shows it */

/* A JSON text without its quotes and escapes. */
static char *text_of_json(struct json v)
{
	size_t room = (size_t)(v.end - v.s) + 8; /* json_string keeps room for a character */
	char *text = need_new(room);

	if (v.s < v.end && *v.s == '"')
		json_string(v, text, room);
	else
		memcpy(text, v.s, (size_t)(v.end - v.s));
	return text;
}

static bool is_bytes(const char *name)
{
	size_t n = strlen(name);

	return !strcmp(name, "bytes") || (n > 6 && !strcmp(name + n - 6, "_bytes"));
}

static bool is_number(const char *type)
{
	static const char *const numbers[] = { "INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL" };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strstr(type, numbers[i]) && !strchr(type, '[') && !strchr(type, '('))
			return true;
	return !strncmp(type, "DECIMAL(", 8);
}

/* ---- JSON ---- */

static char *object_of(const struct sql_rows *r, struct json cells)
{
	char *text = NULL;
	size_t len = 0, i = 0;
	FILE *f = need_stream(&text, &len);
	struct json cell = json_first(cells, NULL);

	fputc('{', f);
	for (; cell.s && i < r->count; cell = json_next(cells, cell, NULL), i++) {
		fputs(i ? ", " : "", f);
		emit_json_string(f, r->columns[i].name, strlen(r->columns[i].name));
		fprintf(f, ": %.*s", (int)(cell.end - cell.s), cell.s);
	}
	fputc('}', f);
	fclose(f);
	return text;
}

static void keep_cell(struct sql_rows *r, size_t at, char *text)
{
	if (at >= r->room) {
		r->room = at < 64 ? 128 : at * 2;
		r->cells = need_resize(r->cells, r->room * sizeof(*r->cells));
	}
	r->cells[at] = text;
}

static bool name_row(void *ctx, size_t i, struct row_sql_name *row)
{
	const struct sql_column *c = &((const struct sql_rows *)ctx)->columns[i];

	*row = (struct row_sql_name){ .name = { c->name, strlen(c->name) },
				      .type = { c->type, strlen(c->type) } };
	return true;
}

static bool object_row(void *ctx, size_t i, struct row_sql_row *row)
{
	const char *text = ((const struct sql_rows *)ctx)->cells[i];

	*row = (struct row_sql_row){ .cells = { text, strlen(text) } };
	return true;
}

static void print_sql_json(struct sql_rows *r)
{
	const struct row_sql row = { .columns = { r->count, name_row, r },
				     .rows = { r->rows, object_row, r } };

	emit_document(r->out, sql, &row);
}

/* ---- CSV ---- */

static void csv_text(const char *s, bool text)
{
	const char *apostrophe = text && begins_formula(s, strlen(s)) ? "'" : "";

	if (!s[strcspn(s, ",\"\r\n")]) {
		printf("%s%s", apostrophe, s);
		return;
	}
	printf("\"%s", apostrophe);
	for (; *s; s++) {
		if (*s == '"')
			putchar('"');
		putchar(*s);
	}
	putchar('"');
}

static void csv_head(const struct sql_rows *r)
{
	for (size_t i = 0; i < r->count; i++) {
		fputs(i ? "," : "", stdout);
		csv_text(r->columns[i].name, true);
	}
	putchar('\n');
}

static bool is_null(struct json v)
{
	return v.end - v.s == 4 && !strncmp(v.s, "null", 4);
}

static void csv_line(const struct sql_rows *r, struct json cells)
{
	struct json cell = json_first(cells, NULL);

	for (size_t i = 0; cell.s && i < r->count; cell = json_next(cells, cell, NULL), i++) {
		char *text = is_null(cell) ? need_new(1) : text_of_json(cell);

		fputs(i ? "," : "", stdout);
		csv_text(text, *cell.s == '"');
		free(text);
	}
	putchar('\n');
}

/* ---- text ---- */

static char *shown(const struct sql_column *c, struct json v)
{
	char bytes[HUMAN_MAX], *text;
	int64_t n;

	if (is_null(v))
		return need_copy("-", 1);
	if (c->bytes && c->right) {
		n = (int64_t)json_number(v);
		text = need_new(HUMAN_MAX + 1);
		snprintf(text, HUMAN_MAX + 1, "%s%s", n < 0 ? "-" : "",
			 human_bytes(bytes, (uint64_t)(n < 0 ? -n : n)));
		return text;
	}
	text = text_of_json(v);
	if (words_are_cut() && strlen(text) > WIDEST) {
		char *cut = need_new(WIDEST + 8);

		words_within(text, cut, WIDEST + 8, WIDEST);
		free(text);
		text = cut;
	}
	return text;
}

static size_t width_of(const char *s)
{
	return emit_plain_width(s, strlen(s));
}

static void text_line(struct sql_rows *r, struct json cells)
{
	struct json cell = json_first(cells, NULL);

	for (size_t i = 0; i < r->count; i++) {
		char *text = cell.s ? shown(&r->columns[i], cell) : need_copy("", 0);
		size_t width = width_of(text);

		keep_cell(r, r->rows * r->count + i, text);
		r->columns[i].width = width > r->columns[i].width ? width : r->columns[i].width;
		if (cell.s)
			cell = json_next(cells, cell, NULL);
	}
	r->rows++;
}

static void put_sql_cell(char **line, size_t *room, size_t *len, const struct sql_column *c,
			 const char *text, bool last)
{
	int pad = (int)(c->width - width_of(text));
	size_t need = *len + strlen(text) + (size_t)pad + 8;

	if (need > *room) {
		*room = need * 2;
		*line = need_resize(*line, *room);
	}
	*len += (size_t)sprintf(*line + *len, "%*s%s%*s%s", c->right ? pad : 0, "", text,
				c->right || last ? 0 : pad, "", last ? "" : "  ");
}

static void print_sql_text(struct sql_rows *r)
{
	char *line = NULL;
	size_t room = 0;

	for (size_t row = 0; row <= r->rows; row++) {
		size_t len = 0;

		for (size_t i = 0; i < r->count; i++)
			put_sql_cell(&line, &room, &len, &r->columns[i],
				     row ? r->cells[(row - 1) * r->count + i] : r->columns[i].name,
				     i + 1 == r->count);
		if (r->count)
			emit_line(r->out, "%s", line);
	}
	if (r->count && !r->rows)
		emit_line(r->out, "(no rows)");
	free(line);
}

/* ---- all of it ---- */

void sql_columns(void *ctx, struct json columns)
{
	struct sql_rows *r = ctx;
	struct json column = json_first(columns, NULL);
	size_t room = 0;

	for (; column.s; column = json_next(columns, column, NULL)) {
		struct sql_column *c = need_item(r->columns, r->count, room);

		*c = (struct sql_column){ .name = text_of_json(json_at(column, "0")),
					  .type = text_of_json(json_at(column, "1")) };
		c->bytes = is_bytes(c->name);
		c->right = is_number(c->type);
		c->width = width_of(c->name);
	}
	if (r->csv)
		csv_head(r);
}

void sql_row(void *ctx, struct json cells)
{
	struct sql_rows *r = ctx;

	if (r->csv)
		csv_line(r, cells);
	else if (emit_json(r->out))
		keep_cell(r, r->rows++, object_of(r, cells));
	else
		text_line(r, cells);
}

void sql_rows_end(struct sql_rows *r, bool fine)
{
	size_t cells = r->rows * (emit_json(r->out) ? 1 : r->count);

	if (fine && emit_json(r->out))
		print_sql_json(r);
	else if (fine && !r->csv)
		print_sql_text(r);
	for (size_t i = 0; i < r->count; i++) {
		free(r->columns[i].name);
		free(r->columns[i].type);
	}
	for (size_t i = 0; i < cells; i++)
		free(r->cells[i]);
	free(r->columns);
	free(r->cells);
}
