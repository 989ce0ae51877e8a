/* SPDX-License-Identifier: Apache-2.0
 *
 * Known contents of device memory, as extents: ranges whose bytes are kept, or which are filled
 * with one pattern. Extents never overlap, and none crosses a page of 2 MiB. The caller holds the
 * lock of contents.c.
 */
#pragma once

#include "core.h"

#define CELL	     512	/* bytes; smaller writes are kept in such cells */
#define EXTENT_BOUND (64 << 20) /* most bytes that are kept */

/* Order of eviction above EXTENT_BOUND; within a rank the least recently used extent goes first. */
enum extent_rank { RANK_OTHER, RANK_INTEGERS, RANK_SMALL, RANKS };

/* Bytes that one or more extents show parts of. In a mixed store their states follow. */
struct store {
	unsigned int refs, shown; /* shown: number of extents */
	bool mixed;
	size_t bytes, visible; /* visible: total of its extents */
	unsigned char data[];
};

struct extent {
	uintptr_t at;
	uint32_t bytes;
	uint32_t from;	     /* offset in the store */
	struct store *store; /* NULL: the pattern */
	uint32_t pattern;    /* 4 bytes, the lowest for addresses divisible by 4 */
	unsigned char state; /* of all bytes, if the store has no states */
	unsigned char rank;
	uint64_t origin; /* equal for everything that came from one transfer */
	struct extent *newer, *older;
};

struct store *store_new(size_t bytes, bool mixed); /* one reference; NULL: out of memory */
void store_drop(struct store *s);

bool extents_any(void);		   /* without the lock */
bool extents_near(uintptr_t addr); /* without the lock: is there one in this page? */
struct extent *extent_at(uintptr_t addr);
/* The first extent that ends after `addr` and begins before `end`, or NULL. */
struct extent *extent_next(uintptr_t addr, uintptr_t end);
void extents_remove(uintptr_t addr, size_t bytes);
/* The range must be free. Takes a reference to the store for each extent that it makes. */
void extents_insert(const struct extent *like, size_t bytes);
uint64_t extents_origin(void); /* a new number */
void extent_use(struct extent *e);
const unsigned char *extent_states(const struct extent *e, uintptr_t addr); /* of a mixed store */
void extent_read(const struct extent *e, uintptr_t addr, unsigned char *data, unsigned char *states,
		 size_t bytes);
