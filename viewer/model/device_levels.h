/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the framework's cache and the whole device were, from which event on: a row for each change,
 * in order of events. A program may change its cache with every block, so a row holds differences.
 */
#pragma once

#include "../../format/varint.h"
#include "chunks.h"

/*
 * Rows of few bytes, of numbers of variable length, one behind the other in pieces. They are read
 * in the order in which they came. No row begins with a 0: it ends a piece.
 */

#define PACKED_MOST 64 /* bytes of one row */

struct packed {
	struct chunks *chunks;
	size_t used; /* of the last one */
};

struct packed_place {
	size_t piece, at;
};

void packed_init(struct packed *p, struct chunk_pool *pool);
void packed_free(struct packed *p);
/* Where the next row is written to, and that it ends there. */
uint8_t *packed_begin(struct packed *p);
void packed_end(struct packed *p, const uint8_t *end);
/* The row there, or NULL: there are no more, for now. */
const uint8_t *packed_row(const struct packed *p, struct packed_place *place);

/* Reads one number of a row. */
static inline const uint8_t *packed_get(const uint8_t *p, uint64_t *v)
{
	unsigned shift = 0;

	for (*v = 0; *p & 128; shift += 7)
		*v |= (uint64_t)(*p++ & 127) << shift;
	*v |= (uint64_t)*p++ << shift;
	return p;
}

/* A life's number: the difference to the one before, or itself where that is less, so that equal
 * steps are equal bytes though they name what was there long before. */
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
	uint64_t seq, ns;	   /* of the last row, */
	struct device_level *last; /* and of each device */
};

void levels_init(struct levels *l, struct chunk_pool *pool);
void levels_free(struct levels *l);
void levels_add(struct levels *l, const struct device_level *level);

struct levels_cursor {
	const struct levels *levels;
	struct packed_place place;
	uint64_t seq, ns;
	struct device_level devices[LEVEL_DEVICES]; /* the latest of each */
	const struct device_level *now;		    /* NULL: there are no more */
};

void levels_first(struct levels_cursor *c, const struct levels *l);
void levels_next(struct levels_cursor *c);
