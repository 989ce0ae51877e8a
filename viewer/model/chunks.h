/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of tables, in pieces of equal length that do not move. When all tables of a recording take
 * more than a limit, those pieces are kept compressed that came into memory first: in a long run
 * one step is like another, and what is equal in them takes next to nothing. A piece that is asked
 * for comes back.
 */
#pragma once

#include "../base/usual.h"

/* The tables of one recording that share a limit. */
struct chunk_pool;

struct chunk_pool *chunks_new_pool(void);
void chunks_free_pool(struct chunk_pool *pool); /* after its tables */
/* Compresses what is beyond the limit: nobody has a pointer into any table of the pool. */
void chunks_rest(struct chunk_pool *pool);

struct chunks {
	uint8_t **items; /* NULL: it is compressed */
	size_t count, room;
	size_t bytes;		 /* of one */
	size_t words;		 /* of 32 bits in a row; 0: rows differ in length */
	struct chunk_pool *pool; /* NULL: never compressed */
	struct chunk_kept {
		void *data; /* NULL: it was never compressed, or has changed since */
		size_t len;
	} * kept;
	size_t kept_room;
	uint8_t *spare; /* memory for one, or NULL */
};

struct chunks *chunks_new(size_t bytes, size_t words, struct chunk_pool *pool);
void chunks_free(struct chunks *c);
uint8_t *chunks_add(struct chunks *c); /* zeroed */
uint8_t *chunks_unpack(struct chunks *c, size_t i);

/* To read; good until chunks_rest. */
static inline uint8_t *chunks_at(struct chunks *c, size_t i)
{
	uint8_t *chunk = c->items[i];

	return __builtin_expect(chunk != NULL, 1) ? chunk : chunks_unpack(c, i);
}

/* The same to write to. */
static inline uint8_t *chunks_change(struct chunks *c, size_t i)
{
	uint8_t *chunk = chunks_at(c, i);

	if (__builtin_expect(c->kept[i].data != NULL, 0)) {
		free(c->kept[i].data);
		c->kept[i].data = NULL;
	}
	return chunk;
}
