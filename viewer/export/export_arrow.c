/* SPDX-License-Identifier: Apache-2.0 */
/* The table of blocks as an Arrow IPC file: numbers are uint64, texts utf8. */
#include "arrow.h"
#include "export_table.h"

static void row(void *ctx, const struct export_cell *cells)
{
	struct arrow *a = ctx;

	for (unsigned c = 0; c < COLUMNS; c++) {
		if (cells[c].null)
			continue;
		if (export_columns[c].kind == COLUMN_NUMBER)
			arrow_number(a, c, cells[c].number);
		else
			arrow_text(a, c, cells[c].text, cells[c].len);
	}
	arrow_row(a);
}

int export_arrow(struct export *x)
{
	struct arrow_column columns[COLUMNS];
	struct arrow *a;

	for (unsigned c = 0; c < COLUMNS; c++)
		columns[c] = (struct arrow_column){
			export_columns[c].name,
			export_columns[c].kind == COLUMN_NUMBER ? ARROW_UINT64 : ARROW_TEXT,
			export_columns[c].unit, export_columns[c].meaning
		};
	a = arrow_open(x->f, columns, COLUMNS);
	export_table(x, row, a);
	arrow_close(a);
	return 0;
}
