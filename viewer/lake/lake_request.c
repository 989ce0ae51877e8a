/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_request.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/emit_json.h"
#include "../base/need.h"
#include "../../format/version.h"

ASSET_FILE(lake_loader, "python/gpumemtrace/lake/lake_loader.py");
ASSET_FILE(lake_answer, "python/gpumemtrace/lake/lake_answer.py");
ASSET_FILE(lake_duckdb, "python/gpumemtrace/lake/lake_duckdb.py");
ASSET_FILE(lake_places, "python/gpumemtrace/lake/lake_places.py");
ASSET_FILE(lake_folders, "python/gpumemtrace/lake/lake_folders.py");
ASSET_FILE(lake_collect, "python/gpumemtrace/lake/lake_collect.py");
ASSET_FILE(lake_perform, "python/gpumemtrace/lake/lake_perform.py");

/* Each imports only what stands above it. */
static const struct {
	const char *name, *text;
} modules[] = {
	{ "lake_answer", asset_lake_answer },	{ "lake_duckdb", asset_lake_duckdb },
	{ "lake_folders", asset_lake_folders }, { "lake_places", asset_lake_places },
	{ "lake_collect", asset_lake_collect }, { "lake_perform", asset_lake_perform },
};

const char *lake_request_loader(void)
{
	return asset_lake_loader;
}

static void put_modules(FILE *f)
{
	fputs("{\"modules\": [", f);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		fprintf(f, "%s[\"%s\", ", i ? ", " : "", modules[i].name);
		emit_json_string(f, modules[i].text, strlen(modules[i].text));
		fputc(']', f);
	}
	fputc(']', f);
}

static void put_question(FILE *f, const struct lake_question *q)
{
	fprintf(f,
		", \"what\": \"%s\", \"version\": \"" GMT_TOOL_VERSION
		"\", \"has_lake\": %s, \"large\": %s, \"files\": ",
		q->what, q->lake ? "true" : "false", q->large ? "true" : "false");
}

/* With its terminator. */
static void add_string(struct bytes *out, const char *s)
{
	s = s ? s : "";
	bytes_add(out, s, strlen(s) + 1);
}

static void add_own_path(struct bytes *out)
{
	char self[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = 0;
	add_string(out, self);
}

void lake_request(struct bytes *out, const struct lake_question *q)
{
	const struct lake_files none = { 0 }, *files = q->files ? q->files : &none;
	char *text = NULL;
	size_t len;
	FILE *f = need_stream(&text, &len);

	put_modules(f);
	put_question(f, q);
	fclose(f);
	bytes_add(out, text, len);
	free(text);
	lake_files_json(files, out);
	bytes_add(out, "}", 2);
	add_own_path(out);
	add_string(out, q->lake);
	add_string(out, q->text);
	for (size_t i = 0; i < files->count; i++)
		add_string(out, files->items[i].path);
}
