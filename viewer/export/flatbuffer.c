/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

static void flatbuffer_add_number(struct flatbuffer *b, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*need_item(b->p, b->len, b->room) =
			i < sizeof(value) ? (uint8_t)(value >> 8 * i) : 0;
}

void flatbuffer_pad(struct flatbuffer *b, unsigned align)
{
	while (b->len % align)
		flatbuffer_add_number(b, 0, 1);
}

void flatbuffer_set(struct flatbuffer *b, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		b->p[at + i] = (uint8_t)(value >> 8 * i);
}

/* References count from where they stand. */
static void refer(struct flatbuffer *b, size_t at, size_t to)
{
	flatbuffer_set(b, at, to - at, 4);
}

void flatbuffer_start(struct flatbuffer *b)
{
	*b = (struct flatbuffer){ 0 };
	flatbuffer_add_number(b, 0, 4);
}

void flatbuffer_free(struct flatbuffer *b)
{
	free(b->p);
}

/* The table of offsets, then the table: a reference to the former, then the fields, the widest
 * first, so that each is aligned if the first stands at a multiple of 8. */
struct flatbuffer_table flatbuffer_table(struct flatbuffer *b, size_t at, const uint8_t *bytes,
					 unsigned count)
{
	struct flatbuffer_table t = { { 0 } };
	unsigned size = 4;
	size_t offsets, start;

	flatbuffer_pad(b, 8);
	while ((b->len + 4 + 2 * count) % 8 != 4)
		flatbuffer_add_number(b, 0, 2);
	offsets = b->len;
	flatbuffer_add_number(b, 0, 4 + 2 * count);
	start = b->len;
	refer(b, at, start);
	flatbuffer_add_number(b, start - offsets, 4);
	for (unsigned width = 8; width; width /= 2)
		for (unsigned i = 0; i < count; i++) {
			if (bytes[i] != width)
				continue;
			t.field[i] = b->len;
			flatbuffer_set(b, offsets + 4 + 2 * i, b->len - start, 2);
			flatbuffer_add_number(b, 0, width);
			size += width;
		}
	flatbuffer_set(b, offsets, 4 + 2 * count, 2);
	flatbuffer_set(b, offsets + 2, size, 2);
	return t;
}

void flatbuffer_string(struct flatbuffer *b, size_t at, const char *s)
{
	size_t len = strlen(s);

	flatbuffer_pad(b, 4);
	refer(b, at, b->len);
	flatbuffer_add_number(b, len, 4);
	for (size_t i = 0; i <= len; i++)
		flatbuffer_add_number(b, (uint8_t)s[i], 1);
}

size_t flatbuffer_vector(struct flatbuffer *b, size_t at, uint32_t count, unsigned each,
			 unsigned align)
{
	size_t first;

	flatbuffer_pad(b, 4);
	while ((b->len + 4) % align)
		flatbuffer_add_number(b, 0, 1);
	refer(b, at, b->len);
	flatbuffer_add_number(b, count, 4);
	first = b->len;
	for (size_t i = 0; i < (size_t)count * each; i++)
		flatbuffer_add_number(b, 0, 1);
	return first;
}
