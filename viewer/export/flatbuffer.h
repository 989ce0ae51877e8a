/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes flatbuffers from front to back. A table comes first, then everything that it refers to,
 * and each reference is filled in when its target is written. Only the features that the Arrow
 * format needs.
 */
#ifndef VIEWER_FLATBUFFER_H
#define VIEWER_FLATBUFFER_H

#include <stddef.h>
#include <stdint.h>

#define FLATBUFFER_FIELDS 8

struct flatbuffer {
	uint8_t *p;
	size_t len, room;
};

/* Positions of a table's fields. */
struct flatbuffer_table {
	size_t field[FLATBUFFER_FIELDS];
};

void flatbuffer_start(struct flatbuffer *b); /* the first table becomes the root */
void flatbuffer_free(struct flatbuffer *b);

/* bytes[i]: size of a field, 1, 2, 4 or 8; 0 leaves it out. `at` is the reference to the table, 0
 * for the root. */
struct flatbuffer_table flatbuffer_table(struct flatbuffer *b, size_t at, const uint8_t *bytes,
					 unsigned count);
void flatbuffer_set(struct flatbuffer *b, size_t at, uint64_t value, unsigned bytes);
void flatbuffer_string(struct flatbuffer *b, size_t at, const char *s);
/* Returns the position of the first element; each takes `each` bytes, all zero. */
size_t flatbuffer_vector(struct flatbuffer *b, size_t at, uint32_t count, unsigned each,
			 unsigned align);
void flatbuffer_pad(struct flatbuffer *b, unsigned align);

#endif
