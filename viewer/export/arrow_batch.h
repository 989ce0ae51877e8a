/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table on their way into Arrow's buffers, up to ARROW_ROWS at a time. */
#ifndef VIEWER_ARROW_BATCH_H
#define VIEWER_ARROW_BATCH_H

#include <stdbool.h>

#include "../base/bytes.h"

#define ARROW_ROWS 65536

enum arrow_type { ARROW_UINT64 = 1, ARROW_UINT32, ARROW_UINT16, ARROW_INT32, ARROW_TEXT };

struct arrow_column {
	const char *name;
	enum arrow_type type;
	const char *unit, *meaning; /* its metadata */
};

/* `given` cells of the batch have a value, the others are null. Numbers stand in `values` by row;
 * texts follow each other, with their ends in `offsets`. `valid` has one bit per row. */
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
bool arrow_row(struct arrow_batch *b); /* true: there is no room for another one */

/* Sets `len` of all buffers; a column without nulls has no validity bits. */
void arrow_batch_finish(struct arrow_batch *b);
/* No rows, all buffers ready. Buffers that a reader took (p = NULL) are allocated again. */
void arrow_batch_clear(struct arrow_batch *b);

unsigned arrow_bytes(enum arrow_type type); /* of a number, or of a text's offset */

#endif
