/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels by name. A program registers thousands in its constructors; of PyTorch's, two families
 * are known well enough to say which argument is the result, and some are computed when they are
 * small.
 */
#ifndef SIMGPU_KERNELS_H
#define SIMGPU_KERNELS_H

#include "sim.h"

enum kernel_family {
	KERNEL_UNSEEN, /* its name has not been looked at */
	KERNEL_OTHER,
	KERNEL_ELEMENTS, /* count, functor, pointers: the result's first */
	KERNEL_CASTING,	 /* the same, and the types in memory behind them */
	KERNEL_STRIDED,	 /* count, and a structure: how to step, pointers, functor */
	KERNEL_STEPPING, /* the same, but of mixed types: never computed */
	KERNEL_REDUCE,	 /* one structure */
};

enum kernel_what {
	WHAT_UNKNOWN,
	WHAT_FILL,
	WHAT_COPY,
	WHAT_OR,
	WHAT_AND,
	WHAT_XOR,
	WHAT_NOT,
	WHAT_EQUAL,   /* or not, as the functor says */
	WHAT_COMPARE, /* >=, >, <=, < */
	WHAT_MULTIPLY,
	WHAT_ADD,
	WHAT_ABSOLUTE,
	WHAT_MAXIMUM,
	WHAT_MINIMUM,
	WHAT_ANY,
	WHAT_ALL,
	WHAT_SUM,
};

struct kernel {
	const void *host;
	const char *name;
	enum kernel_family family;
	enum kernel_what what;
	char in, out; /* types, as C++ mangles them */
	int operands;
	int scalar; /* where the functor keeps an operand, -1 if it does not */
};

/* The host pointer is what a launch names. kernels.c */
void kernel_register(const void *host, const char *name);
struct kernel *kernel_find(const void *host); /* NULL if unknown */
void kernel_parse(struct kernel *k);

/* A launch: true if its effect on small contents has been done here. small.c */
bool small_launch(const void *host, void *stream, void **args);

#endif
