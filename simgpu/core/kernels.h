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
	KERNEL_CAT,	 /* result, a table of inputs, how they lie: cat.c */
	KERNEL_SCALER,	 /* six arguments: scaler.c */
	KERNEL_LISTS,	 /* a table of addresses, functor, what the functor takes */
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
	WHAT_DIVIDE,
	WHAT_ADD,
	WHAT_ABSOLUTE,
	WHAT_MAXIMUM,
	WHAT_MINIMUM,
	WHAT_ANY,
	WHAT_ALL,
	WHAT_SUM,
	WHAT_MEAN,
};

struct kernel {
	const void *host;
	const char *name;
	enum kernel_family family;
	enum kernel_what what;
	char in, out;	   /* types, as C++ mangles them */
	int operands;	   /* or lists */
	int scalar;	   /* where the functor keeps an operand, -1 if it does not */
	bool scalar_first; /* that operand is the left one */
	int column;	   /* of lists: bytes that each tensor has beside its address and size */
	int result;	   /* of lists: which is written, -1 if any may be */
};

/* The host pointer is what a launch names. kernels.c */
void kernel_register(const void *host, const char *name);
struct kernel *kernel_find(const void *host); /* NULL if unknown */
void kernel_parse(struct kernel *k);
/* "...MARKt", t a type: that type, else 0. */
char kernel_type_after(const char *name, const char *mark);

/* A launch: true if its effect on small contents has been done here. small.c */
bool small_launch(const void *host, void *stream, const unsigned int grid[3], void **args);

/* reduce.c */
void reduce_launch(const struct kernel *k, void *structure);

/* lists.c */
void lists_parse(struct kernel *k);
bool lists_launch(const struct kernel *k, unsigned int blocks, void **args);

/* cat.c */
bool cat_launch(const struct kernel *k, unsigned int inputs, void **args);

/* scaler.c */
bool scaler_launch(void **args);

#endif
