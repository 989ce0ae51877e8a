/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as an Arrow IPC file: a schema, record batches of up to 65536 rows, and an index
 * of them at the end. Everything between the first 8 bytes and the index is an Arrow stream, so
 * that a reader of a pipe can take batches as they come.
 */
#pragma once

#include "../base/bytes.h"

/* Rows of a table in Arrow's buffers, up to ARROW_ROWS at a time. */

#define ARROW_ROWS 65536

/* Types by their formats in Arrow's C data interface. */
enum arrow_type {
	ARROW_UINT64 = 'L',
	ARROW_UINT32 = 'I',
	ARROW_UINT16 = 'S',
	ARROW_INT32 = 'i',
	ARROW_TEXT = 'u',
};

struct arrow_column {
	const char *name;
	enum arrow_type type;
	const char *unit, *meaning; /* its metadata; NULL: it has none */
};

/* Chooses the columns that a list separated by commas names, each once; NULL = all. `which` gets
 * their indices. 0, or EXIT_USAGE after an error message. */
int arrow_choose(const struct arrow_column *all, unsigned total, const char *list, unsigned *which,
		 unsigned *count);

/* The cells of a column. `given` of them have a value, the others are null. Numbers are in `values`
 * by row; texts follow each other, with their ends in `offsets`. `valid` has one bit per row. */
struct arrow_cells {
	struct bytes valid, offsets, values;
	uint64_t given;
};

struct arrow_batch {
	const struct arrow_column *columns;
	struct arrow_cells *cells;
	unsigned count, texts, *text; /* indices of the text columns */
	uint64_t rows;
};

/* The columns belong to the caller and must outlive the batch. */
void arrow_batch_init(struct arrow_batch *b, const struct arrow_column *columns, unsigned count);
void arrow_batch_free(struct arrow_batch *b);

/* Sets a cell of a row, in any order; arrow_row ends the row. Cells that were not set are null. */
void arrow_number(struct arrow_batch *b, unsigned column, uint64_t number);
void arrow_text(struct arrow_batch *b, unsigned column, const char *s, size_t len);
bool arrow_row(struct arrow_batch *b); /* true: the batch is full */

/* Sets `len` of all buffers; a column without nulls has no validity bits. */
void arrow_batch_finish(struct arrow_batch *b);
/* Empties the batch. Buffers that a reader took (p = NULL) are allocated again. */
void arrow_batch_clear(struct arrow_batch *b);

struct arrow;

/* The columns belong to the caller and must outlive the writer. The schema is written at once. */
struct arrow *arrow_open(FILE *f, const struct arrow_column *columns, unsigned count);

/* The batch to fill. When it is full, arrow_flush writes it. */
struct arrow_batch *arrow_rows(struct arrow *a);
void arrow_flush(struct arrow *a);

/* Writes the remaining rows and the index. The file stays open; the caller checks its errors. */
void arrow_close(struct arrow *a);
