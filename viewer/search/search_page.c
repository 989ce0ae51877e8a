/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a search: its document as `--json` has it, with the pages of the runs beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/need.h"
#include "../../format/version.h"
#include "../page/page_write.h"
#include "search.h"

static char *command_line(const struct search *s)
{
	char *text;
	size_t len;
	FILE *f = need_stream(&text, &len);

	for (char *const *c = s->plan.command; *c; c++)
		fprintf(f, "%s%s", c == s->plan.command ? "" : " ", *c);
	fclose(f);
	return text;
}

static void names(struct search *s, struct emit *out)
{
	emit_array(out, "names");
	for (size_t i = 0; i < s->plan.varied.count; i++)
		emit_text(out, NULL, s->plan.varied.items[i].name);
	emit_end(out);
}

static void pages(struct search *s, struct emit *out)
{
	char path[PATH_MAX];

	emit_array(out, "pages");
	for (size_t i = 0; i < s->cell_count; i++) {
		trial_path(s->cells[i].trial, &s->plan, ".html", path);
		emit_text(out, NULL, access(path, R_OK) ? "" : strrchr(path, '/') + 1);
	}
	emit_end(out);
}

static char *document(struct search *s, size_t *len)
{
	char *text = NULL, *command = command_line(s);
	FILE *f = need_stream(&text, len);
	struct emit *out = emit_open(f, true);

	emit_object(out, NULL);
	emit_text(out, "command", command);
	emit_text(out, "tool", GMT_TOOL_VERSION);
	names(s, out);
	pages(s, out);
	search_document(s, out, "fit");
	emit_end(out);
	emit_close(out);
	fclose(f);
	free(command);
	return text;
}

int search_page(struct search *s)
{
	char path[PATH_MAX];
	struct page_text page = { .kind = PAGE_SEARCH, .title = "fit" };
	struct outfile file;
	uint64_t bytes;
	int rc;

	if (snprintf(path, sizeof(path), "%.3900s/index.html", s->plan.folder) < 0)
		return 0;
	rc = outfile_open(&file, path, "<!doctype html>\n<!-- SPDX", "a page of this tool");
	if (rc)
		return rc;
	page.first = document(s, &page.first_len);
	page.rest = need_copy("{}", 2);
	page.rest_len = 2;
	rc = page_commit(&file, &page, &bytes);
	page_text_free(&page);
	return rc;
}
