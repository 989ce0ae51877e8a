/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard: a lake's ready questions on one page. */
#include <string.h>

#include "../base/outfile.h"
#include "../lake/lake_engine.h"
#include "../lake/lake_page.h"
#include "../ask/command.h"

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

	if (!strstr(o->lake, "://") && !lake_is_one(o->lake))
		return say_error(EXIT_UNREADABLE,
				 "%s is no lake: gpumemtrace collect RUNS -o LAKE makes one",
				 o->lake);
	rc = outfile_open(&file, o->output, "<!doctype html>", "a page");
	if (rc)
		return rc;
	rc = lake_page(&text, o->lake);
	if (!rc)
		rc = write_dashboard(out, &file, &text);
	else
		outfile_drop(&file);
	page_text_free(&text);
	return rc;
}
