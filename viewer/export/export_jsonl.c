/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object a line, all columns in each. */
#include <inttypes.h>

#include "../base/emit_json.h"
#include "export_table.h"

static void row(void *ctx, const struct export_cell *cells)
{
	FILE *f = ctx;

	for (unsigned i = 0; i < COLUMNS; i++) {
		fprintf(f, "%s\"%s\":", i ? "," : "{", export_columns[i].name);
		if (cells[i].null)
			fputs("null", f);
		else if (export_columns[i].type == ARROW_TEXT)
			emit_json_string(f, cells[i].text, cells[i].len);
		else
			fprintf(f, "%" PRIu64, cells[i].number);
	}
	fputs("}\n", f);
}

int export_jsonl(struct export *x)
{
	export_table(x, row, x->f);
	return 0;
}
