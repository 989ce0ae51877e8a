/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One column of numbers for the page: variable-length integers, seven bits a byte, the lowest
 * first, written into the page's JSON as one base64 string.
 */
#ifndef VIEWER_PAGE_COLUMN_H
#define VIEWER_PAGE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "../base/map.h"

struct emit;

struct column {
	uint8_t *bytes;
	size_t count, room;
};

void column_put(struct column *c, uint64_t n);
void column_put_all(struct column *c, const uint64_t *numbers, size_t count);
#define column_row(c, ...)                                   \
	column_put_all(c, (const uint64_t[]){ __VA_ARGS__ }, \
		       sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
/* A number with a sign as one that is put: 0, -1, 1, -2, ... */
uint64_t column_signed(uint64_t n);
void column_join(struct column *c, struct column *more); /* which is freed */
/* Writes the column as the member `key` and frees it. */
void column_emit(struct column *c, struct emit *out, const char *key);

/* Rows of as many small numbers each, every one once. */
struct interned {
	unsigned width;
	uint32_t *rows;
	size_t count, room; /* rows; numbers */
	struct map ids;	    /* hash -> row, the next hash if that one is another row's */
};

uint32_t interned_put(struct interned *t, const uint32_t *row);
void interned_emit(const struct interned *t, struct emit *out, const char *key);
void interned_free(struct interned *t);

#endif
