/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage of a table's rows, in pieces. A pointer to a row is valid until chunks_rest, or as long
 * as the table if that has no pool.
 */
#pragma once

#include "chunks.h"

#define ROWS_RECENT 16384 /* rows in the cache in which rows_share looks for an equal one */

#ifndef ROWS_PIECE_BITS
#define ROWS_PIECE_BITS 14 /* log2 of the rows in a piece */
#endif
#define ROWS_PIECE (1u << ROWS_PIECE_BITS)

struct row_store {
	struct chunks *chunks;
	size_t each; /* bytes of a row */
	uint32_t count;
};

void rows_init(struct row_store *r, size_t each, struct chunk_pool *pool);
void rows_free(struct row_store *r);
void *rows_add(struct row_store *r); /* zeroed */

/* A hash of n bytes (a multiple of 8), below ROWS_RECENT. */
unsigned rows_hash(const void *bytes, size_t n);
/* The number of a row with this content: a recent one, or a new one. Row 0 is never shared. */
uint32_t rows_share(struct row_store *r, uint32_t recent[ROWS_RECENT], const void *row);

/* Row i for writing. */
static inline void *rows_change(const struct row_store *r, uint32_t i)
{
	return chunks_change(r->chunks, i >> ROWS_PIECE_BITS) + (i & (ROWS_PIECE - 1)) * r->each;
}

/* Row i for reading. In a table without a pool also for writing. */
static inline void *rows_at(const struct row_store *r, uint32_t i)
{
	return chunks_at(r->chunks, i >> ROWS_PIECE_BITS) + (i & (ROWS_PIECE - 1)) * r->each;
}
