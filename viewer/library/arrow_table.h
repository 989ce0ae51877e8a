/* SPDX-License-Identifier: Apache-2.0 */
/* A table without nesting as the structs of Arrow's C data interface. */
#ifndef VIEWER_ARROW_TABLE_H
#define VIEWER_ARROW_TABLE_H

#include <stddef.h>

#include "arrow_abi.h"

struct table_column {
	const char *name, *format;
	const char *unit, *meaning; /* metadata; NULL: it has none */
};

/* Buffers by malloc: validity bits or NULL, offsets (of texts) or NULL, values. */
struct table_cells {
	void *buffers[3];
	int64_t nulls;
};

void table_schema(const struct table_column *columns, size_t count, struct ArrowSchema *out);
/* The buffers belong to the array from here on. */
void table_array(const struct table_column *columns, const struct table_cells *cells, size_t count,
		 int64_t rows, struct ArrowArray *out);

#endif
