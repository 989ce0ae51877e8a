/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "lake.h"

bool lake_wants(const struct lake_writer *w, enum lake_table_id t, unsigned column)
{
	return w->files[t] && (!w->wanted[t] || w->wanted[t] >> column & 1);
}

/* NULL: the column is not written. */
static struct bytes *lake_cell(struct lake_writer *w, enum lake_table_id t, unsigned column)
{
	struct bytes *cell = &w->cells[t][column];

	cell->len = 0;
	return lake_wants(w, t, column) ? cell : NULL;
}

void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n)
{
	struct bytes *cell = lake_cell(w, t, column);
	char digits[24];

	if (cell)
		bytes_add(cell, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, n));
}

void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes)
{
	struct bytes *cell = lake_cell(w, t, column);

	if (cell)
		bytes_add(cell, yes ? "true" : "false", yes ? 4 : 5);
}

/* So that checkouts of several people have the same paths. */
static size_t private_part(const struct lake_writer *w, const char *path, size_t len)
{
	static const char packages[] = "/site-packages/";
	const char *at = memmem(path, len, packages, strlen(packages));
	size_t n = strlen(w->root);

	if (at)
		return (size_t)(at - path) + strlen(packages);
	return n && n + 1 < len && !memcmp(path, w->root, n) && path[n] == '/' ? n + 1 : 0;
}

void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len)
{
	struct bytes *cell = len ? lake_cell(w, t, column) : NULL;
	const char *quote;

	if (!cell)
		return;
	if (w->root && !strcmp(lake_tables[t].columns[column].name, "file")) {
		size_t n = private_part(w, s, len);

		s += n;
		len -= n;
	}
	bytes_add(cell, "\"", 1);
	for (; (quote = memchr(s, '"', len)); len -= (size_t)(quote - s) + 1, s = quote + 1) {
		bytes_add_text(cell, s, (size_t)(quote - s));
		bytes_add(cell, "\"\"", 2);
	}
	bytes_add_text(cell, s, len);
	bytes_add(cell, "\"", 1);
}

void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s)
{
	if (s)
		lake_bytes(w, t, column, s, strlen(s));
}

void lake_row(struct lake_writer *w, enum lake_table_id t)
{
	FILE *f = w->files[t];

	fprintf(f, "%zu", w->nth);
	for (unsigned c = 0; c < lake_tables[t].count; c++) {
		struct bytes *cell = &w->cells[t][c];

		if (!lake_wants(w, t, c))
			continue;
		fputc(',', f);
		if (cell->len)
			fwrite(cell->p, 1, cell->len, f);
		cell->len = 0;
	}
	fputc('\n', f);
}
