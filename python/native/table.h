/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table without nesting as Arrow's C data interface has it: its columns, and batches whose
 * buffers lie in one piece of memory that lives until the last array of them is released.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arrow_abi.h"

struct column {
	char *name, *metadata; /* metadata as the C data interface has it, NULL if there is none */
	char format[4];
	uint8_t bits; /* of a number; 0 for texts, which have offsets */
};

struct columns {
	struct column *items;
	size_t count;
};

struct buffer {
	uint64_t offset, len; /* in the body */
};

struct batch {
	int64_t rows;
	int64_t *nulls;		/* of each column */
	struct buffer *buffers; /* 3 of each column: valid, offsets or none, values */
	uint8_t *body;		/* by malloc; belongs to the array from table_array on */
	uint64_t body_len;
};

/* Metadata is a count of pairs, then lengths and bytes. 0 for NULL. */
size_t table_metadata_len(const char *metadata);

void columns_free(struct columns *c);

/* 0 or an errno. */
int table_schema(const struct columns *c, struct ArrowSchema *out);
int table_array(const struct columns *c, const struct batch *b, struct ArrowArray *out);

/* Whether every buffer is long enough for its rows, and texts lie within their characters. */
bool table_fits(const struct columns *c, const struct batch *b);

#endif
