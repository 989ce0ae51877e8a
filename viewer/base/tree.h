/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks in order of address: found by their address or by any address inside them. Groups of
 * up to 256 sorted addresses, and a sorted row of the groups' first addresses: a search reads two
 * short rows, and no order of coming makes it slow; most are spared by a table of the latest ones.
 * Blocks never move while they live.
 */
#ifndef VIEWER_TREE_H
#define VIEWER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One allocation of any layer, from its birth to its death: what its two events said. */
struct block {
	uint64_t addr, size;
	uint64_t seq, born_ns;
	uint64_t died_seq, died_ns; /* 0 = lives */
	uint64_t stream;
	uint64_t handle; /* of a mapping: the physical memory behind it */
	uint32_t stack, thread;
	uint32_t name; /* of its event: backward node of a framework block, else API function */
	uint32_t life; /* 1 + its row in the table of lives, 0 = none */
	int32_t device;
	uint16_t flags;	 /* enum gmt_flag */
	uint16_t memory; /* enum gmt_mem, 0 = framework block */
	uint16_t state;	 /* at a moment: enum life_state */
	uint16_t mark;	 /* whatever the owner of a tree keeps beside it */
};

struct tree_group;

struct tree {
	size_t each; /* bytes of an item, which begins with its block; 0 = it is no more than that
		      */
	uint8_t **chunks; /* the items stay where they are */
	size_t room, chunk_count;
	uint32_t *free; /* places in chunks that can be used again, */
	size_t free_count, free_room;
	uint32_t used;	/* and how many were used at all */
	uint32_t count; /* blocks that are there */
	struct tree_group **groups;
	uint64_t *firsts; /* the first address of each group */
	size_t group_count, group_room, first_room;
	uint32_t *recent; /* 1 + place of the latest block of each hash of an address, 0 = none */
	uint8_t *there;	  /* how many blocks of each finer hash there are, 255 = that or more */
};

struct block *tree_find(const struct tree *t, uint64_t addr);
struct block *tree_enclosing(const struct tree *t, uint64_t addr);
struct block *tree_from(const struct tree *t, uint64_t addr); /* first with address >= addr */
/* A new block at addr, in the place of one that is there. */
struct block *tree_insert(struct tree *t, uint64_t addr);
void tree_remove(struct tree *t, uint64_t addr);
void tree_free(struct tree *t);

#define TREE_EACH(t, b)                              \
	for (struct block *b = tree_from((t), 0); b; \
	     b = b->addr == UINT64_MAX ? NULL : tree_from((t), b->addr + 1))

#endif
