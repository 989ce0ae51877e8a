/* SPDX-License-Identifier: Apache-2.0 */
/* The table of blocks as an Arrow IPC file: numbers are uint64, texts utf8. */
#include "export_table.h"

void export_arrow_row(struct arrow *a, const struct arrow_column *columns, unsigned count,
		      const struct export_cell *cells)
{
	for (unsigned c = 0; c < count; c++) {
		if (cells[c].null)
			continue;
		if (columns[c].type == ARROW_TEXT)
			arrow_text(a, c, cells[c].text, cells[c].len);
		else
			arrow_number(a, c, cells[c].number);
	}
	arrow_row(a);
}

static void row(void *ctx, const struct export_cell *cells)
{
	export_arrow_row(ctx, export_columns, COLUMNS, cells);
}

int export_arrow(struct export *x)
{
	struct arrow *a = arrow_open(x->f, export_columns, COLUMNS);

	export_table(x, row, a);
	arrow_close(a);
	return 0;
}
