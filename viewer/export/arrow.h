/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as an Arrow IPC file: a schema, record batches of up to 65536 rows, and at the end
 * where they are. What stands between the first 8 bytes and the end is an Arrow stream, so that a
 * reader of a pipe can take batches as they come.
 */
#ifndef VIEWER_ARROW_H
#define VIEWER_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum arrow_type { ARROW_UINT64 = 1, ARROW_UINT32, ARROW_UINT16, ARROW_INT32, ARROW_TEXT };

struct arrow_column {
	const char *name;
	enum arrow_type type;
	const char *unit, *meaning; /* its metadata */
};

struct arrow;

/* The columns stay the caller's and must outlive the writer. The schema is written at once. */
struct arrow *arrow_open(FILE *f, const struct arrow_column *columns, unsigned count);

/* Every cell of a row, in any order, then arrow_row. A cell that is not given is null. */
void arrow_number(struct arrow *a, unsigned column, uint64_t number);
void arrow_text(struct arrow *a, unsigned column, const char *s, size_t len);
void arrow_row(struct arrow *a);

/* What is left, and the end. The file stays open; its errors are the caller's to look for. */
void arrow_close(struct arrow *a);

#endif
