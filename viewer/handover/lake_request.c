/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_request.h"

#include <stdlib.h>

#include "../base/asset.h"
#include "handover.h"
#include "../base/need.h"
#include "../base/proc.h"
#include "../../format/version.h"

ASSET_FILE(lake_answer, "python/gpumemtrace/lake/lake_answer.py");
ASSET_FILE(lake_duckdb, "python/gpumemtrace/lake/lake_duckdb.py");
ASSET_FILE(lake_places, "python/gpumemtrace/lake/lake_places.py");
ASSET_FILE(lake_folders, "python/gpumemtrace/lake/lake_folders.py");
ASSET_FILE(lake_store, "python/gpumemtrace/lake/lake_store.py");
ASSET_FILE(lake_regressions, "python/gpumemtrace/lake/lake_regressions.py");
ASSET_FILE(lake_collect, "python/gpumemtrace/lake/lake_collect.py");
ASSET_FILE(lake_perform, "python/gpumemtrace/lake/lake_perform.py");

/* Each imports only what stands above it. */
static const struct handover_module modules[] = {
	{ "lake_answer", asset_lake_answer },
	{ "lake_folders", asset_lake_folders },
	{ "lake_duckdb", asset_lake_duckdb },
	{ "lake_places", asset_lake_places },
	{ "lake_store", asset_lake_store },
	{ "lake_collect", asset_lake_collect },
	{ "lake_regressions", asset_lake_regressions },
	{ "lake_perform", asset_lake_perform },
};

static void put_question(FILE *f, const struct lake_question *q)
{
	fprintf(f,
		", \"what\": \"%s\", \"version\": \"" GMT_TOOL_VERSION
		"\", \"has_lake\": %d, \"large\": %d, \"limit\": %.17g, \"percent\": %d, \"fail\": "
		"%d, \"files\": ",
		q->what, q->lake != NULL, q->large, q->limit, q->percent, q->fail);
}

void lake_request(struct bytes *out, const struct lake_question *q)
{
	const struct lake_files none = { 0 }, *files = q->files ? q->files : &none;
	char *text = NULL, own[PATH_MAX];
	size_t len;
	FILE *f = need_stream(&text, &len);

	handover_modules(f, "gpumemtrace_lake", modules, sizeof(modules) / sizeof(modules[0]));
	put_question(f, q);
	fclose(f);
	bytes_add(out, text, len);
	free(text);
	lake_files_json(files, out);
	bytes_add(out, "}", 2);
	proc_own_path(own);
	handover_string(out, own);
	handover_string(out, q->lake);
	handover_string(out, q->text);
	handover_string(out, q->since);
	for (size_t i = 0; i < files->count; i++)
		handover_string(out, files->items[i].path);
}
