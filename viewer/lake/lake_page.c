/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_page.h"

#include <string.h>

#include "../base/emit_json.h"
#include "../base/need.h"
#include "../../format/version.h"
#include "lake_engine.h"

struct panels {
	FILE *f;
	size_t count;
};

/* A row is a panel. */
static void put_panel(void *ctx, struct json cells)
{
	struct panels *p = ctx;
	struct json panel = json_first(cells, NULL);

	fputs(p->count++ ? ",\n" : "\n", p->f);
	fwrite(panel.s, 1, panel.s ? (size_t)(panel.end - panel.s) : 0, p->f);
}

int lake_page(struct page_text *text, const char *lake)
{
	struct panels p = { .f = need_stream(&text->first, &text->first_len) };
	const struct lake_question q = {
		.what = "dashboard", .lake = lake, .row = put_panel, .ctx = &p
	};
	int rc;

	fputs("{\"tool\":\"" GMT_TOOL_VERSION "\",\"lake\":", p.f);
	emit_json_string(p.f, lake, strlen(lake));
	fputs(",\"panels\":[", p.f);
	rc = lake_ask(&q);
	fputs("]}", p.f);
	fclose(p.f);
	text->rest = need_copy("{}", 2);
	text->rest_len = 2;
	return rc;
}
