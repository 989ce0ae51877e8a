/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of tables, in pieces of equal length. When all tables of a recording take more than a
 * limit, the oldest pieces in memory are compressed: the steps of a long run are alike, so they
 * shrink to little. A piece is decompressed when it is used.
 */
#pragma once

#include "../base/usual.h"

#ifndef CHUNKS_LIMIT
#define CHUNKS_LIMIT (128ul << 20) /* bytes */
#endif

#define CHUNKS_SPARES 4

/* The tables of one recording that share a limit. */
struct chunk_pool {
	struct chunk_place *queue; /* pieces in memory, oldest first */
	size_t first, count, room;
	size_t bytes; /* total of these pieces */
	uint8_t *buffer, *out;
	size_t buffer_room, out_room;
	struct ZSTD_CCtx_s *pack;
	struct ZSTD_DCtx_s *unpack;
};

struct chunk_pool *chunks_new_pool(void);
void chunks_free_pool(struct chunk_pool *pool); /* after its tables */
void chunks_pack(struct chunk_pool *pool);

/* Compresses the oldest pieces beyond the limit. Pointers into the pool's tables become invalid. */
static inline void chunks_rest(struct chunk_pool *pool)
{
	if (__builtin_expect(pool->bytes > CHUNKS_LIMIT, 0))
		chunks_pack(pool);
}

struct chunks {
	uint8_t **items; /* NULL = compressed */
	size_t count, room;
	size_t bytes;		 /* of one piece */
	size_t words;		 /* 32-bit words in a row, 0 = rows differ in length */
	struct chunk_pool *pool; /* NULL = never compressed */
	struct chunk_kept {
		void *data; /* NULL = never compressed, or changed since */
		size_t len;
	} * kept;
	size_t kept_room;
	uint8_t *spares[CHUNKS_SPARES]; /* unused memory of pieces */
	size_t spare_count;
};

struct chunks *chunks_new(size_t bytes, size_t words, struct chunk_pool *pool);
void chunks_free(struct chunks *c);
uint8_t *chunks_add(struct chunks *c); /* zeroed */
uint8_t *chunks_unpack(struct chunks *c, size_t i);

/* Piece i for reading, valid until chunks_rest. */
static inline uint8_t *chunks_at(struct chunks *c, size_t i)
{
	uint8_t *chunk = c->items[i];

	return __builtin_expect(chunk != NULL, 1) ? chunk : chunks_unpack(c, i);
}

/* Piece i for writing, valid until chunks_rest. Drops its compressed copy. */
static inline uint8_t *chunks_change(struct chunks *c, size_t i)
{
	uint8_t *chunk = chunks_at(c, i);

	if (__builtin_expect(c->kept[i].data != NULL, 0)) {
		free(c->kept[i].data);
		c->kept[i].data = NULL;
	}
	return chunk;
}
