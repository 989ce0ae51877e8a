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

/* What autograd says of a block, for the rules of classify.c. */
enum block_tag {
	BLOCK_LEAF = 1 << 0,	 /* a leaf that requires grad lies in it */
	BLOCK_GRAD = 1 << 1,	 /* a parameter's gradient arrived in it */
	BLOCK_DETACHED = 1 << 2, /* it was a leaf only while a graph had it saved: a cut graph */
	BLOCK_PLAIN = 1 << 3,	 /* saved, and no differentiable operation had made it */
	BLOCK_GRAPH = 1 << 4,	 /* saved, and one had */
	BLOCK_PACKED = 1 << 5,	 /* saved through a hook: its release is not told */
};

/* What its thread was doing at a block's birth or death. */
enum block_stage {
	STAGE_OUTSIDE,	 /* nothing of the following */
	STAGE_FORWARD,	 /* inside the call of a module */
	STAGE_BACKWARD,	 /* a backward node */
	STAGE_RECOMPUTE, /* a forward pass inside a backward node */
	STAGE_ZERO_GRAD,
	STAGE_OPTIMIZER,
	STAGES
};

/* One allocation of any layer, from its birth to its death. */
struct block {
	uint64_t addr, size;
	uint64_t seq, born_ns;
	uint64_t died_seq; /* 0 = lives */
	uint64_t stream;
	uint64_t step;	 /* number of the Optimizer.step range that it was born in, 0 = none */
	uint64_t handle; /* of a mapping: the physical memory behind it */
	uint32_t stack, thread;
	uint32_t name;	/* of its event: backward node of a framework block, else API function */
	uint32_t scope; /* evaluation of a backward node, 0 = not in backward */
	uint32_t saved; /* SavedVariables that hold a tensor in it now */
	uint32_t life;	/* 1 + its row in the table of lives, 0 = none */
	uint32_t copy;	/* 1 + its place in a series, 0 = none */
	int32_t device;
	uint16_t flags;	  /* enum gmt_flag */
	uint16_t tags;	  /* enum block_tag */
	uint16_t memory;  /* enum gmt_mem, 0 = framework block */
	uint16_t refs;	  /* of physical memory: handles and mappings */
	uint64_t storage; /* bytes of the largest one that a tag had in it, 0 = none */

	uint64_t leaf_ns, grad_ns, save_ns; /* when that was first said, 0 = never */
	uint64_t died_ns;
	uint32_t born_forward, died_forward;   /* forward passes that had begun */
	uint32_t born_backward, died_backward; /* backward passes that had begun */
	uint32_t save_backward;		       /* the same at the first saving */
	uint32_t born_steps, save_steps;       /* optimizer steps that had begun */
	uint32_t leaf_backward, leaf_passes;   /* as a leaf: the last pass, how many */
	uint32_t arrived_backward, arrivals;   /* of gradients for it: the last pass, how many */
	uint32_t heir_stack, heir_signs;       /* of the module's block whose place it took */
	uint32_t save_stack;		       /* of the first saving */
	uint32_t signs, died_signs;	       /* of the stack: enum stack_sign */
	uint32_t stem;			       /* born in forward: its frames inside of modules */
	uint32_t
		rank; /* 1 + its place among those of its size that were always there, by address */
	uint32_t next_stack;	   /* of what its thread made next, the same */
	uint8_t stage, died_stage; /* enum block_stage */
	bool after_forward;	   /* born after a forward pass of its step */
	bool piled;		   /* gradients were reduced into another one beside it */
	bool after_step;	   /* born after the optimizer's step */
	bool walked;		   /* without tags: a backward pass is over that its pass led to */
	bool grads_live;	   /* a copy: gradients were there at its moment */
	bool save_after_moment;	   /* a copy: first saved after its moment */
	uint8_t counted_as;	   /* in a series: its class after the latest event */
};

struct tree_group;

struct tree {
	struct block **chunks; /* the blocks stay where they are */
	size_t room, chunk_count;
	uint32_t *free; /* places in chunks that can be used again, */
	size_t free_count, free_room;
	uint32_t used;	/* and how many were used at all */
	uint32_t count; /* blocks that are there */
	struct tree_group **groups;
	uint64_t *firsts; /* the first address of each group */
	size_t group_count, group_room, first_room;
	uint32_t *recent; /* 1 + place of the latest block of each hash of an address, 0 = none */
};

struct block *tree_find(const struct tree *t, uint64_t addr);
struct block *tree_enclosing(const struct tree *t, uint64_t addr);
struct block *tree_from(const struct tree *t, uint64_t addr); /* first with address >= addr */
/* A new block at addr, which must not be there yet. */
struct block *tree_insert(struct tree *t, uint64_t addr);
void tree_remove(struct tree *t, uint64_t addr);
void tree_free(struct tree *t);

#define TREE_EACH(t, b)                              \
	for (struct block *b = tree_from((t), 0); b; \
	     b = b->addr == UINT64_MAX ? NULL : tree_from((t), b->addr + 1))

#endif
