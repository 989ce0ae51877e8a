/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of a segment (a block or free memory), and sets of free pieces, ordered by size and
 * address or by address alone. A piece is in one set at most. The sets are treaps whose shape
 * depends on the pieces' numbers only, so that a replay is reproducible.
 */
#pragma once

#include "../base/usual.h"

struct bin;

struct piece {
	uint64_t addr, size;
	struct piece *prev, *next;  /* in its segment, by address */
	struct piece *left, *right; /* in a set */
	struct bin *bin;
	struct piece *place; /* the addresses of its segment; NULL for an expandable one */
	uint64_t since;	     /* of a free piece: number of searches when it became free */
	uint32_t rank;	     /* in a set: not less than that of any piece below it in the tree */
	bool taken, mapped, expandable;
};

struct piece_set {
	struct piece *root;
	bool by_address;
};

void pieces_insert(struct piece_set *s, struct piece *p);
void pieces_erase(struct piece_set *s, struct piece *p);
/* The first piece not below (size, addr), or with `lower` the last one below; NULL: none. */
struct piece *pieces_beside(const struct piece_set *s, uint64_t size, uint64_t addr, bool lower);
#define pieces_from(s, size, addr)  pieces_beside((s), (size), (addr), false)
#define pieces_below(s, size, addr) pieces_beside((s), (size), (addr), true)

static inline struct piece *pieces_first(const struct piece_set *s)
{
	return pieces_from(s, 0, 0);
}

static inline struct piece *pieces_after(const struct piece_set *s, const struct piece *p)
{
	return pieces_from(s, p->size, p->addr + 1);
}

/* Memory for pieces. */
struct piece_store {
	struct piece **chunks;
	size_t chunk_count, chunk_room, used;
	struct piece *free; /* unused ones, linked by `next` */
	uint32_t random;
};

struct piece *piece_new(struct piece_store *s);
void piece_give(struct piece_store *s, struct piece *p);
void pieces_free(struct piece_store *s);
