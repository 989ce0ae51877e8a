/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard: a lake's ready questions on one page. */
#include <string.h>

#include "../base/emit_json.h"
#include "../base/need.h"
#include "../base/outfile.h"
#include "../handover/lake_files.h"
#include "../handover/question.h"
#include "../page/page_write.h"
#include "../../format/version.h"
#include "../ask/command.h"

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
	text->rest = need_copy("{}", 2);
	text->rest_len = 2;
	return rc;
}

static int write_dashboard(struct emit *out, struct outfile *file, const struct page_text *text)
{
	char size[HUMAN_MAX];
	struct row_dashboard row = { .file = file->path };
	int rc = page_commit(file, text, &row.bytes);

	if (rc)
		return rc;
	emit_document(out, dashboard, &row);
	emit_line(out, "%s: %s", file->path, human_bytes(size, row.bytes));
	return 0;
}

int run_dashboard(const struct dashboard_options *o, struct emit *out)
{
	struct page_text text = { .kind = PAGE_LAKE, .title = o->lake };
	struct outfile file;
	int rc;

	if (!lake_may_be(o->lake))
		return EXIT_UNREADABLE;
	rc = outfile_open(&file, o->output, "<!doctype html>", "a page");
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
