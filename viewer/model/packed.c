/* SPDX-License-Identifier: Apache-2.0 */
#include "packed.h"

#ifndef PIECE
#define PIECE (1u << 18)
#endif

void packed_init(struct packed *p, struct chunk_pool *pool)
{
	*p = (struct packed){ .chunks = chunks_new(PIECE, 0, pool) };
}

static uint8_t *last_chunk(const struct packed *p)
{
	return chunks_change(p->chunks, p->chunks->count - 1);
}

void packed_free(struct packed *p)
{
	chunks_free(p->chunks);
	*p = (struct packed){ 0 };
}

uint8_t *packed_begin(struct packed *p)
{
	if (!p->chunks->count || p->used + PACKED_MOST > PIECE) {
		chunks_add(p->chunks);
		p->used = 0;
	}
	return last_chunk(p) + p->used;
}

void packed_end(struct packed *p, const uint8_t *end)
{
	p->used = (size_t)(end - last_chunk(p));
}

const uint8_t *packed_row(const struct packed *p, struct packed_place *place)
{
	size_t count = p->chunks->count;

	while (place->piece < count) {
		size_t end = place->piece + 1 == count ? p->used : PIECE;
		const uint8_t *row = chunks_at(p->chunks, place->piece) + place->at;

		if (place->at < end && *row)
			return row;
		if (place->piece + 1 == count)
			break;
		place->piece++;
		place->at = 0;
	}
	return NULL;
}
