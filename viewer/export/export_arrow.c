/* SPDX-License-Identifier: Apache-2.0 */
/* The table of blocks as an Arrow IPC file: numbers are uint64, texts utf8. */
#include "export_table.h"

bool export_arrow_row(struct arrow_batch *b, const struct export_cell *cells)
{
	for (unsigned c = 0; c < b->count; c++) {
		if (cells[c].null)
			continue;
		if (b->columns[c].type == ARROW_TEXT)
			arrow_text(b, c, cells[c].text, cells[c].len);
		else
			arrow_number(b, c, cells[c].number);
	}
	return arrow_row(b);
}

static void row(void *ctx, const struct export_cell *cells)
{
	if (export_arrow_row(arrow_rows(ctx), cells))
		arrow_flush(ctx);
}

int export_arrow(struct export *x)
{
	struct arrow *a = arrow_open(x->f, export_columns, COLUMNS);

	export_table(x, row, a);
	arrow_close(a);
	return 0;
}
