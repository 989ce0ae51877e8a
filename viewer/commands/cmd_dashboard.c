/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard: a lake's ready questions on one page. */
#include <string.h>

#include "../base/outfile.h"
#include "../lake/lake_index.h"
#include "../lake/lake_page.h"
#include "command.h"

struct dashboard_options {
	const char *lake, *output;
};

static int write_page(struct emit *out, struct outfile *file, const struct page_text *text)
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

static int run_dashboard(const void *options, struct emit *out)
{
	const struct dashboard_options *o = options;
	struct page_text text = { .kind = PAGE_LAKE, .title = o->lake };
	struct outfile file;
	int rc;

	if (!o->output)
		return say_error(EXIT_USAGE, "-o OUT.html is missing: where to write the page");
	if (!strstr(o->lake, "://") && !lake_is_one(o->lake))
		return say_error(EXIT_UNREADABLE,
				 "%s is no lake: gpumemtrace collect RUNS -o LAKE makes one",
				 o->lake);
	rc = outfile_open(&file, o->output, "<!doctype html>", "a page");
	if (rc)
		return rc;
	rc = lake_page(&text, o->lake);
	if (!rc)
		rc = write_page(out, &file, &text);
	else
		outfile_drop(&file);
	page_text_free(&text);
	return rc;
}

static const struct option_row options[] = {
	OPTION(struct dashboard_options, output, "output", 'o', TEXT, "OUT",
	       "page to write (needed)"),
	{ 0 },
};

const struct command command_dashboard = {
	.name = "dashboard",
	.summary = "the collected runs on one page: peaks by commit, strays, growth",
	.text = "Writes one page that needs no network and no server, of a lake that collect made: "
		"peak by commit, where memory ran out, ranks that stray, what grows, memory that "
		"was "
		"never used, fragmentation by setting, all runs. Its tables sort and search. "
		"Needs DuckDB, as gpumemtrace sql does.",
	.options = options,
	COMMAND_TAKES(struct dashboard_options,
		      OPERAND(struct dashboard_options, lake, "LAKE", ONE)),
	.run = run_dashboard,
};
