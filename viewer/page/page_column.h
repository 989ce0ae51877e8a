/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One column of numbers for the page, written into its JSON as one base64 string. bytes_varint
 * appends a number, and the zigzag form of a signed one.
 */
#pragma once

#include "../../format/varint.h"
#include "../base/bytes.h"
#include "../base/map.h"

struct emit;

void column_put_all(struct bytes *c, const uint64_t *numbers, size_t count);
#define column_row(c, ...)                                   \
	column_put_all(c, (const uint64_t[]){ __VA_ARGS__ }, \
		       sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
/* Writes the column as the member `key` and frees it. */
void column_emit(struct bytes *c, struct emit *out, const char *key);

/* Rows of equal length of small numbers, each stored once. */
struct interned {
	unsigned width;
	uint32_t *rows;
	size_t count, room; /* rows; numbers */
	struct map ids;	    /* hash -> row; after a collision the next free hash */
};

uint32_t interned_put(struct interned *t, const uint32_t *row);
void interned_emit(const struct interned *t, struct emit *out, const char *key);
void interned_free(struct interned *t);
