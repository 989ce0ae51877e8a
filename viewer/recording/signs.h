/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of a block's purpose in the Python frames of its stack, as bits. They are derived from
 * names of functions and files, once per node of the stack tree. The recording shows which classes
 * are modules or optimizers: nn.Module calls their `forward`, or the optimizers' wrapper their
 * `step`.
 */
#pragma once

#include "defs.h"

enum stack_sign {
	STACK_PYTHON = 1 << 0,	    /* there are Python frames */
	STACK_FORWARD = 1 << 1,	    /* inside a module's call */
	STACK_PARAM = 1 << 2,	    /* a module is made, moved, copied or filled */
	STACK_STEP = 1 << 3,	    /* inside an optimizer's step */
	STACK_STATE = 1 << 4,	    /* an optimizer makes or loads its state */
	STACK_ZERO_GRAD = 1 << 5,   /* gradients are cleared */
	STACK_RECOMPUTE = 1 << 6,   /* checkpointing runs a forward pass again */
	STACK_DATA = 1 << 7,	    /* data loading */
	STACK_CACHE = 1 << 8,	    /* a class of keys and values kept between passes */
	STACK_BUCKET = 1 << 9,	    /* gradient buckets of data parallelism */
	STACK_COLLECTIVE = 1 << 10, /* collective communication */
	STACK_UNSHARDED = 1 << 11,  /* a sharded parameter is gathered */
	STACK_REDUCED = 1 << 12,    /* gradients are reduced and scattered */
	STACK_COPY = 1 << 13,	    /* copy.deepcopy of a tensor that is no parameter */
	STACK_CLIP = 1 << 14,	    /* between backward and the optimizer: clipping, unscaling */
	STACK_LOAD = 1 << 15,	    /* tensors are loaded from a file */
	STACK_BACKWARD = 1 << 16,   /* a backward pass is being started */
	STACK_CAPTURE = 1 << 17,    /* a graph of kernels is captured */
	STACK_ASKED = 1 << 18,	    /* torch.autograd.grad: gradients go to no parameter */
	STACK_METHOD = 1 << 19,	    /* a module's method that neither makes nor fills it */
	STACK_REMADE = 1 << 20,	    /* copy.deepcopy: the tensor is in an object or ordered dict */
	STACK_DICT = 1 << 21,	    /* copy.deepcopy: the tensor is in a plain dict */
	STACK_FUNCTION = 1 << 22,   /* inside a Function of Python, or a transform of torch.func */
	STACK_CALLED = 1 << 23,	    /* a call of backward() makes its first gradients */
	STACK_GRADS = 1 << 24,	    /* memory for gradients is allocated, by the function's name */
	STACK_NODE = 1 << 25,	    /* inside the backward of a Function of Python */
};

#define SIGNS_RECENT 1024

struct signs {
	const struct defs *defs;
	struct map codes;	 /* code id -> bits to set */
	struct map nodes;	 /* stack node -> bits */
	struct map module_paths; /* stack node -> see signs_module_path */
	struct map learned;	 /* hash of file and class -> enum learned */
	struct map leading;	 /* code ids that lead to a forward or backward pass */
	struct map led;		 /* stack nodes that do, with all frames outside of them */
	bool ready;
	struct {
		uint32_t stack, bits;
	} recent[SIGNS_RECENT]; /* of the latest stacks, because few come often */
};

void signs_init(struct signs *s, const struct defs *defs);
void signs_free(struct signs *s);
uint32_t signs_find_further(struct signs *s, uint32_t stack);

/* enum stack_sign, 0 for no stack */
static inline uint32_t signs_find(struct signs *s, uint32_t stack)
{
	uint32_t i = stack % SIGNS_RECENT;

	return s->recent[i].stack == stack ? s->recent[i].bits : signs_find_further(s, stack);
}

/* The innermost line of Python as one number, independent of its callers; 0 = none. */
uint64_t signs_line(const struct signs *s, uint32_t stack);
/* The frames inside a module's call as one number, independent of the callers; 0 = none. */
uint32_t signs_module_path(struct signs *s, uint32_t stack);
