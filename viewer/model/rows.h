/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage of a table's rows, in pieces. A pointer to a row is good until chunks_rest, and as long
 * as the table if that has no pool.
 */
#pragma once

#include "chunks.h"

#define ROWS_RECENT 16384 /* rows that are looked at for one of the same content */

#ifndef ROWS_PIECE_BITS
#define ROWS_PIECE_BITS 14 /* rows in a piece */
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

/* A place of ROWS_RECENT, by a hash of so many bytes: a multiple of 8. */
unsigned rows_hash(const void *bytes, size_t n);
/* A row of this content, one that is there or a new one: its number. Row 0 is never one of them. */
uint32_t rows_share(struct row_store *r, uint32_t recent[ROWS_RECENT], const void *row);

/* To write to. */
static inline void *rows_change(const struct row_store *r, uint32_t i)
{
	return chunks_change(r->chunks, i >> ROWS_PIECE_BITS) + (i & (ROWS_PIECE - 1)) * r->each;
}

/* To read; also to write in a table without a pool. */
static inline void *rows_at(const struct row_store *r, uint32_t i)
{
	return chunks_at(r->chunks, i >> ROWS_PIECE_BITS) + (i & (ROWS_PIECE - 1)) * r->each;
}
