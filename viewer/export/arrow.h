/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as an Arrow IPC file: a schema, record batches of up to 65536 rows, and an index
 * of them at the end. Everything between the first 8 bytes and the index is an Arrow stream, so
 * that a reader of a pipe can take batches as they come.
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

/* The columns belong to the caller and must outlive the writer. The schema is written at once. */
struct arrow *arrow_open(FILE *f, const struct arrow_column *columns, unsigned count);

/* Sets a cell of a row, in any order; arrow_row ends the row. Cells that were not set are null. */
void arrow_number(struct arrow *a, unsigned column, uint64_t number);
void arrow_text(struct arrow *a, unsigned column, const char *s, size_t len);
void arrow_row(struct arrow *a);

/* Writes the remaining rows and the index. The file stays open; the caller checks its errors. */
void arrow_close(struct arrow *a);

#endif
