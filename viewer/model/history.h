/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything known about one life: its row, the activity of its thread at birth and end, and the
 * facts that few lives have. For the model and the rules of classes only; all other code uses
 * struct block and the class.
 */
#pragma once

#include "../base/tree.h"
#include "lives.h"
#include "life_uses.h"

/* What classes/study.h concludes about a life from other lives. */
struct concluded {
	uint32_t predecessor_stack, predecessor_signs; /* of the block that it replaced, 0 = none */
	uint32_t next_stack;			       /* of its thread's next block */
	uint32_t rank;		 /* number among old live blocks of its size, 0 = it is not old */
	uint32_t reduced_beside; /* another block of its stack also holds reduced gradients */
	uint32_t loaded_state;	 /* 1 = read from a file for an optimizer */
	uint32_t used;		 /* enum used */
	uint32_t written;	 /* stack of the script's latest work on it that made no block */
};

_Static_assert(sizeof(struct concluded) == 32, "compared by bytes");

struct history {
	struct block block;
	struct life_facts facts;
	uint64_t context; /* CUDA context that ends it, 0 = the device's primary one */
	uint64_t step;	  /* number of the Optimizer.step range that it was born in, 0 = none */
	uint32_t born_forward, died_forward;   /* forward passes that had begun */
	uint32_t born_backward, died_backward; /* backward passes that had begun */
	uint32_t born_steps;		       /* optimizer steps that had begun */
	uint32_t leaf_backward;		       /* last backward pass in which it was a leaf */
	uint32_t arrived_backward;	       /* last one in which a gradient for it arrived */
	uint32_t signs, died_signs;	       /* enum stack_sign of both stacks */
	uint32_t saved;			       /* SavedVariables that hold a tensor in it now */
	uint64_t saved_seq;		       /* event of the latest saving */
	uint64_t away;			       /* bytes of it that are not mapped now */
	bool asleep;			       /* none of it is mapped */
	uint16_t refs;			       /* of physical memory: handles and mappings */
	struct life_uses uses;
	uint64_t used_ns, pause_ns; /* its latest use; its longest pause */
	uint8_t stage, died_stage;  /* enum block_stage */
	bool in_node;		    /* born while a backward node ran */
	bool after_forward;	    /* born after a forward pass of its step */
	bool after_step;	    /* born after the optimizer's step */

	/* Conclusions from other lives. */
	struct concluded concluded;
	uint32_t module_path; /* born in forward: hash of its frames in modules */
	bool backward_over;   /* without tags: the backward pass that its pass led to is over */
	bool holds_gradients; /* a bucket: gradients have arrived in it */
	struct history *from; /* work outside of passes computed it from that block alone */
	uint32_t from_life;   /* valid while `from` is this life */
};

/* Trees of the model hold histories. */
static inline struct history *live_find(const struct tree *t, uint64_t addr)
{
	return (struct history *)tree_find(t, addr);
}

static inline struct history *live_enclosing(const struct tree *t, uint64_t addr)
{
	return (struct history *)tree_enclosing(t, addr);
}

static inline struct history *live_from(const struct tree *t, uint64_t addr)
{
	return (struct history *)tree_from(t, addr);
}

static inline struct history *live_insert(struct tree *t, uint64_t addr)
{
	return (struct history *)tree_insert(t, addr);
}

static inline struct history *live_after(const struct tree *t, const struct history *h)
{
	return h->block.addr == UINT64_MAX ? NULL : live_from(t, h->block.addr + 1);
}

#define LIVE_EACH(t, b) for (struct history *b = live_from((t), 0); b; b = live_after((t), b))
