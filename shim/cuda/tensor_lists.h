/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's kernels over lists of tensors (foreach and fused optimizers, cat): a parameter has room
 * for more addresses than a launch uses, and the rest holds addresses of earlier launches.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tensor_lists {
	uint16_t lists;	   /* 0: an ordinary kernel */
	uint16_t most;	   /* tensors for which a list has room */
	uint16_t steps;	   /* offset of a further list, of the optimizer's steps; 0 = none */
	uint16_t by_block; /* offset of the bytes that say which tensor a block of threads works on;
			      0: each row of blocks works on one */
	uint16_t parameter; /* which parameter holds the lists: 0 or 1 */
};

/* The layout by the kernel's mangled name, if the sizes of its first two parameters fit it; else
 * .lists is 0. */
struct tensor_lists tensor_lists_of(const char *name, size_t length, const size_t sizes[2]);

/* Number of tensors that a launch uses. grid: blocks of threads in x and y. */
unsigned tensor_lists_count(const struct tensor_lists *l, const char *parameter,
			    const unsigned grid[2]);
