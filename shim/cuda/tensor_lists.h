/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's kernels over lists of tensors (foreach and fused optimizers, cat): a parameter has room
 * for more addresses than a launch uses, and the rest is what earlier launches left there.
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
	uint16_t parameter; /* that holds them: 0 or 1 */
};

/* By the kernel's mangled name and the sizes of its first two parameters, if they are those of the
 * layout. */
struct tensor_lists tensor_lists_of(const char *name, size_t length, const size_t sizes[2]);

/* Tensors of a launch with so many blocks of threads in x, and in y. */
unsigned tensor_lists_count(const struct tensor_lists *l, const char *parameter,
			    const unsigned grid[2]);
