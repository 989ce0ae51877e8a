/* SPDX-License-Identifier: Apache-2.0 */
/* An array of bytes that grows at its end. */
#pragma once

#include "usual.h"

struct bytes {
	uint8_t *p;
	size_t len, room;
};

void bytes_add(struct bytes *b, const void *bytes, size_t len);
void bytes_varint(struct bytes *b, uint64_t n);
/* Adds text as UTF-8; each invalid byte becomes '?'. Returns how many bytes were added. */
size_t bytes_add_text(struct bytes *b, const char *s, size_t len);
#define BYTES_HASH 14695981039346656037u

/* The FNV-1a hash of these bytes, continued from `hash` (BYTES_HASH at first). */
static inline uint64_t bytes_hash(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 1099511628211u;
	return hash;
}

void bytes_free(struct bytes *b);
