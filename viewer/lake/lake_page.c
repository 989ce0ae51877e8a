/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_page.h"

#include <stdlib.h>
#include <string.h>

#include "../base/emit_json.h"
#include "../base/need.h"
#include "../../format/version.h"
#include "lake_engine.h"
#include "lake_sql.h"

#define ROWS 2000 /* of a panel; the others are counted */

struct panel {
	FILE *f;
	size_t rows;
};

static const struct {
	const char *name, *title, *note, *sql;
} panels[] = {
#define PANEL(name, title, note, sql) { #name, title, note, sql },
#include "panels.def"
};

static void page_write_json(FILE *f, struct json v)
{
	size_t len = (size_t)(v.end - v.s);

	while (len && (v.s[len - 1] == '\n' || v.s[len - 1] == ' '))
		len--;
	fwrite(v.s, 1, len, f);
}

static void columns(void *ctx, struct json names)
{
	struct panel *p = ctx;

	fputs(",\"columns\":", p->f);
	page_write_json(p->f, names);
	fputs(",\"rows\":[", p->f);
}

static void row(void *ctx, struct json cells)
{
	struct panel *p = ctx;

	if (p->rows++ >= ROWS)
		return;
	fputs(p->rows > 1 ? ",\n" : "", p->f);
	page_write_json(p->f, cells);
}

static void member(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\":", key);
	emit_json_string(f, text, strlen(text));
}

static int put_panel(FILE *f, size_t i, const char *prepare)
{
	struct panel p = { .f = f };
	const struct lake_question q = { .prepare = prepare,
					 .query = panels[i].sql,
					 .columns = columns,
					 .row = row,
					 .ctx = &p };
	int rc;

	fputs(i ? ",\n{" : "\n{", f);
	member(f, "name", panels[i].name);
	fputc(',', f);
	member(f, "title", panels[i].title);
	fputc(',', f);
	member(f, "note", panels[i].note);
	rc = lake_ask(&q);
	fprintf(f, "],\"left_out\":%zu}", p.rows > ROWS ? p.rows - ROWS : 0);
	return rc;
}

int lake_page(struct page_text *text, const char *lake)
{
	char *prepare = NULL;
	size_t len;
	FILE *f = need_stream(&prepare, &len);
	int rc = 0;

	lake_sql_prepare(f, lake);
	fclose(f);
	f = need_stream(&text->first, &text->first_len);
	fputc('{', f);
	member(f, "tool", GMT_TOOL_VERSION);
	fputc(',', f);
	member(f, "lake", lake);
	fputs(",\"panels\":[", f);
	for (size_t i = 0; i < sizeof(panels) / sizeof(panels[0]) && !rc; i++)
		rc = put_panel(f, i, prepare);
	fputs("]}", f);
	fclose(f);
	text->rest = need_copy("{}", 2);
	text->rest_len = 2;
	free(prepare);
	return rc;
}
