/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One column of numbers for the page: variable-length integers, seven bits a byte, the lowest
 * first, written into the page's JSON as one base64 string.
 */
#ifndef VIEWER_PAGE_COLUMN_H
#define VIEWER_PAGE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

struct emit;

struct column {
	uint8_t *bytes;
	size_t count, room;
};

void column_put(struct column *c, uint64_t n);
void column_put_signed(struct column *c, int64_t n);	 /* 0, -1, 1, -2, ... */
void column_join(struct column *c, struct column *more); /* which is freed */
/* Writes the column as the member `key` and frees it. */
void column_emit(struct column *c, struct emit *out, const char *key);

#endif
