/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values (RFC 4180): texts in quotes where they need them, null as nothing. */
#include <inttypes.h>
#include <string.h>

#include "../base/emit_json.h"
#include "../base/ending.h"
#include "export_table.h"

/* Control characters and what is no UTF-8 as \xNN, so that a row is a line. */
static void put_text(FILE *f, const char *s, size_t len)
{
	bool quotes = memchr(s, ',', len) || memchr(s, '"', len) || memchr(s, ' ', len);

	if (quotes)
		fputc('"', f);
	if (begins_formula(s, len))
		fputc('\'', f);
	while (len) {
		const char *quote = memchr(s, '"', len);
		size_t n = quote ? (size_t)(quote - s) : len;

		emit_plain_string(f, s, n);
		if (quote)
			fputs("\"\"", f);
		n += quote != NULL;
		s += n;
		len -= n;
	}
	if (quotes)
		fputc('"', f);
}

static void row(void *ctx, const struct export_cell *cells)
{
	FILE *f = ctx;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (i)
			fputc(',', f);
		if (cells[i].null)
			continue;
		if (export_columns[i].type == ARROW_TEXT)
			put_text(f, cells[i].text, cells[i].len);
		else
			fprintf(f, "%" PRIu64, cells[i].number);
	}
	fputs("\r\n", f);
}

int export_csv(struct export *x)
{
	for (unsigned i = 0; i < COLUMNS; i++)
		fprintf(x->f, "%s%s", i ? "," : "", export_columns[i].name);
	fputs("\r\n", x->f);
	export_table(x, row, x->f);
	return 0;
}
