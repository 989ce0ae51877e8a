/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks ordered by address, found by their address or by any address inside them. Groups hold
 * up to 128 sorted addresses, and a sorted array holds the groups' first addresses. A search reads
 * two short arrays, and no order of insertion makes it slow. A table of the most recent blocks
 * saves most searches. Blocks do not move while they live. A removed block keeps its place until a
 * search meets it, because the next block at its address then needs no search.
 */
#pragma once

#include "usual.h"

/* One allocation of any layer, from birth to death, with the data of its two events. */
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
	uint16_t flags;	   /* enum gmt_flag */
	uint16_t memory;   /* enum gmt_mem, 0 = framework block */
	uint16_t state;	   /* at a moment: enum life_state */
	uint16_t mark;	   /* for the owner of the tree */
	uint16_t category; /* in a snapshot: enum category */
};

struct tree_group;

struct tree {
	size_t each;	  /* bytes of an item, which begins with its block; 0 = a block only */
	uint8_t **chunks; /* items never move */
	size_t room, chunk_count;
	uint32_t *free; /* free places in chunks */
	size_t free_count, free_room;
	uint32_t used;	/* places used so far, the free ones included */
	uint32_t count; /* blocks in the tree */
	struct tree_group **groups;
	uint64_t *firsts; /* the first address of each group */
	size_t group_count, group_room, first_room;
	uint32_t *recent; /* by hash of address: 1 + place of the latest block, 0 = none */
	uint8_t *there;	  /* by finer hash: number of blocks, 255 = that or more */
	bool *gone;	  /* by place: its block was removed */
	uint32_t gone_count;
};

struct block *tree_find(const struct tree *t, uint64_t addr);
struct block *tree_enclosing(const struct tree *t, uint64_t addr);
struct block *tree_from(const struct tree *t, uint64_t addr); /* first with address >= addr */
/* Inserts a block at addr, replacing one with that address. */
struct block *tree_insert(struct tree *t, uint64_t addr);
void tree_remove(struct tree *t, uint64_t addr);
/* Gives up the places of removed blocks. Until the next removal, searches then change nothing. */
void tree_tidy(struct tree *t);
void tree_free(struct tree *t);

#define TREE_EACH(t, b)                              \
	for (struct block *b = tree_from((t), 0); b; \
	     b = b->addr == UINT64_MAX ? NULL : tree_from((t), b->addr + 1))
