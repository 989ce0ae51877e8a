/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The framework's reserved bytes and the device's free bytes over time: a row for each change, in
 * order of events. Rows hold differences, because a program might change its cache with each block.
 */
#pragma once

#include "../../format/varint.h"
#include "chunks.h"

/*
 * Short rows of varints, one behind the other in pieces, read in the order in which they were
 * written. A piece ends where a row would begin with 0, so no row does.
 */

#define PACKED_MOST 64 /* bytes of the longest row */

struct packed {
	struct chunks *chunks;
	size_t used;  /* bytes of the last piece */
	size_t room;  /* of these, for beginnings of rows */
	uint8_t *row; /* the latest one, until its end */
};

struct packed_place {
	size_t piece, at;
};

void packed_init(struct packed *p, struct chunk_pool *pool);
void packed_free(struct packed *p);
void packed_add_piece(struct packed *p);

/* Where to write the next row, up to PACKED_MOST bytes. */
static inline uint8_t *packed_begin(struct packed *p)
{
	if (p->used >= p->room)
		packed_add_piece(p);
	return p->row = chunks_change(p->chunks, p->chunks->count - 1) + p->used;
}

static inline void packed_end(struct packed *p, const uint8_t *end)
{
	p->used += (size_t)(end - p->row);
}

const uint8_t *packed_row_further(const struct packed *p, struct packed_place *place);

/* The row at the place, or NULL behind the last one. At a piece's end the place moves on. */
static inline const uint8_t *packed_row(const struct packed *p, struct packed_place *place)
{
	const uint8_t *row;

	if (place->piece + 1 >= p->chunks->count || place->at >= p->chunks->bytes)
		return packed_row_further(p, place);
	row = chunks_at(p->chunks, place->piece) + place->at;
	return *row ? row : packed_row_further(p, place);
}

/* Reads one number of a row. */
static inline const uint8_t *packed_get(const uint8_t *p, uint64_t *v)
{
	*v = *p & 127;
	for (unsigned shift = 7; *p++ & 128; shift += 7)
		*v |= (uint64_t)(*p & 127) << shift;
	return p;
}

/* Writes a life's number as its difference to the one before, or as itself if that is smaller.
 * Steps that repeat are then equal bytes, also where they name long-lived blocks. */
static inline uint8_t *packed_put_life(uint8_t *p, uint32_t life, uint32_t before)
{
	uint64_t more = zigzag((uint64_t)life - before);

	return put_varint(p, life < more / 2 ? (uint64_t)life << 1 | 1 : more << 1);
}

static inline const uint8_t *packed_get_life(const uint8_t *p, uint32_t *life)
{
	uint64_t v;

	p = packed_get(p, &v);
	*life = (uint32_t)(v & 1 ? v >> 1 : *life + unzigzag(v >> 1));
	return p;
}

#define LEVEL_DEVICES 256

struct device_level {
	uint64_t seq, ns;
	uint64_t reserved, context, free_bytes, total_bytes;
	int32_t device; /* 0 to LEVEL_DEVICES - 1 */
};

struct levels {
	struct packed rows;
	uint64_t seq, ns;	   /* of the last row */
	struct device_level *last; /* latest level of each device */
};

void levels_init(struct levels *l, struct chunk_pool *pool);
void levels_free(struct levels *l);
void levels_add(struct levels *l, const struct device_level *level);

struct levels_cursor {
	const struct levels *levels;
	struct packed_place place;
	uint64_t seq, ns;
	struct device_level devices[LEVEL_DEVICES]; /* latest level of each */
	const struct device_level *now;		    /* the row's level, NULL = no more rows */
};

void levels_first(struct levels_cursor *c, const struct levels *l);
void levels_next(struct levels_cursor *c);
