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

/* Adds zeroed rows until there are `count`. */
static inline void rows_reach(struct row_store *r, uint32_t count)
{
	while (r->chunks->count << ROWS_PIECE_BITS < count)
		chunks_add(r->chunks);
	r->count = r->count < count ? count : r->count;
}

static inline void *rows_add(struct row_store *r) /* zeroed */
{
	rows_reach(r, r->count + 1);
	return rows_change(r, r->count - 1);
}

/* The next functions are inline, because they are short where the length is a constant: a multiple
 * of 8 bytes. */

static inline bool rows_equal(const void *a, const void *b, size_t n)
{
	uint64_t differ = 0, x, y;

	for (size_t i = 0; i < n; i += sizeof(x)) {
		memcpy(&x, (const uint8_t *)a + i, sizeof(x));
		memcpy(&y, (const uint8_t *)b + i, sizeof(y));
		differ |= x ^ y;
	}
	return !differ;
}

/* A hash below ROWS_RECENT. */
static inline unsigned rows_hash(const void *bytes, size_t n)
{
	uint64_t h = n, word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
		h = (h ^ h >> 29 ^ word) * 0x9e3779b97f4a7c15u;
	}
	return (h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 50;
}

static inline uint32_t rows_share_bytes(struct row_store *r, uint32_t recent[ROWS_RECENT],
					const void *row, size_t n)
{
	uint32_t *at = &recent[rows_hash(row, n)];

	if (!*at || !rows_equal(rows_at(r, *at), row, n)) {
		*at = r->count;
		memcpy(rows_add(r), row, n);
	}
	return *at;
}

/* The number of a row with this content: a recent one, or a new one. Row 0 is never shared. */
#define rows_share(r, recent, row) rows_share_bytes((r), (recent), (row), sizeof(*(row)))
