/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

void rows_init(struct row_store *r, size_t each, struct chunk_pool *pool)
{
	size_t words = each % sizeof(uint32_t) ? 0 : each / sizeof(uint32_t);

	*r = (struct row_store){ .each = each,
				 .chunks = chunks_new(each * ROWS_PIECE, words, pool) };
}

void rows_free(struct row_store *r)
{
	chunks_free(r->chunks);
	*r = (struct row_store){ .each = r->each };
}

void *rows_add(struct row_store *r)
{
	if (r->count == r->chunks->count << ROWS_PIECE_BITS)
		chunks_add(r->chunks);
	return rows_change(r, r->count++);
}

unsigned rows_hash(const void *bytes, size_t n)
{
	uint64_t h = n, word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
		h = (h ^ h >> 29 ^ word) * 0x9e3779b97f4a7c15u;
	}
	return (h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 50;
}

uint32_t rows_share(struct row_store *r, uint32_t recent[ROWS_RECENT], const void *row)
{
	uint32_t *at = &recent[rows_hash(row, r->each)];

	if (!*at || memcmp(rows_at(r, *at), row, r->each)) {
		*at = r->count;
		memcpy(rows_add(r), row, r->each);
	}
	return *at;
}
