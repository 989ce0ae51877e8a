/* SPDX-License-Identifier: Apache-2.0 */
#include "page_write.h"

#include "../base/asset.h"
#include "../base/emit_json.h"

#define ASSET(name, path) ASSET_FILE(name, path);
#include "page_assets.def"

enum {
	RUN = 1 << PAGE_RUN,
	DIFF = 1 << PAGE_DIFF,
	SEARCH = 1 << PAGE_SEARCH,
	LAKE = 1 << PAGE_LAKE
};

static const struct asset {
	const char *start, *end;
	unsigned pages;
} scripts[] = {
#define ASSET(name, path)
#define SCRIPT(name, pages, path) { asset_##name, asset_end_##name, pages },
#include "page_assets.def"
};

static void page_write_asset(FILE *f, const char *start, const char *end)
{
	fwrite(start, 1, end - start, f);
}

/* JSON inside a script element. "<" occurs only in strings, so its \u escape can replace it. */
static void put_json(FILE *f, const char *json, size_t len)
{
	const char *end = json + len, *at;

	for (; (at = memchr(json, '<', end - json)); json = at + 1) {
		page_write_asset(f, json, at);
		fputs("\\u003c", f);
	}
	page_write_asset(f, json, end);
}

/* Writes a text as a terminal shows it. Only "<" and "&" have a meaning in HTML. */
static void put_text(FILE *f, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "<&");

		emit_plain_string(f, s, n);
		s += n;
		if (*s)
			fprintf(f, "&#%u;", (unsigned char)*s++);
	}
}

static void put_scripts(FILE *f, enum page_kind kind)
{
	fputs("(() => {\n'use strict';\n", f);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (scripts[i].pages & 1u << kind)
			page_write_asset(f, scripts[i].start, scripts[i].end);
	fputs("})();\n", f);
}

/* Writes the part that replaces {{name}} in the frame. */
static void put_part(FILE *f, const struct page_text *t, const char *name)
{
	if (!strncmp(name, "title", 5))
		put_text(f, t->title);
	else if (!strncmp(name, "style", 5))
		page_write_asset(f, asset_style, asset_end_style);
	else if (!strncmp(name, "first", 5))
		put_json(f, t->first, t->first_len);
	else if (!strncmp(name, "rest", 4))
		put_json(f, t->rest, t->rest_len);
	else
		put_scripts(f, t->kind);
}

static void page_write(FILE *f, const struct page_text *t)
{
	const char *at = asset_frame, *open, *close;

	while ((open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
		page_write_asset(f, at, open);
		put_part(f, t, open + 2);
		at = close + 2;
	}
	page_write_asset(f, at, asset_end_frame);
}

int page_commit(struct outfile *file, const struct page_text *t, uint64_t *bytes)
{
	page_write(file->f, t);
	*bytes = (uint64_t)ftell(file->f);
	return outfile_commit(file);
}

void page_text_free(struct page_text *t)
{
	free(t->first);
	free(t->rest);
	t->first = t->rest = NULL;
}
