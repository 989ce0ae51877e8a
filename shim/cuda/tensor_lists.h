/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's kernels over lists of tensors (foreach and fused optimizers): their first parameter has
 * room for more addresses than a launch uses, and the rest is what earlier launches left there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tensor_lists {
	uint16_t lists;	   /* 0: an ordinary kernel */
	uint16_t most;	   /* tensors for which a list has room */
	uint16_t steps;	   /* offset of a further list, of the optimizer's steps; 0 = none */
	uint16_t by_block; /* offset of the bytes that say which tensor a block of threads works on
			    */
};

/* By the kernel's mangled name, and only if the parameter's size is that of the layout. */
struct tensor_lists tensor_lists_of(const char *name, size_t length, size_t size);

/* Tensors of a launch with so many blocks of threads. */
unsigned tensor_lists_count(const struct tensor_lists *l, const char *parameter, unsigned blocks);
