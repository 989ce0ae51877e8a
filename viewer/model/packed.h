/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of few bytes, of numbers of variable length, one behind the other in pieces. They are read
 * in the order in which they came. No row begins with a 0: it ends a piece.
 */
#ifndef VIEWER_PACKED_H
#define VIEWER_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "chunks.h"

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

#endif
