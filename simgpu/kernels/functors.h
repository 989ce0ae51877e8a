/* SPDX-License-Identifier: Apache-2.0
 *
 * The function that an element-wise kernel applies to each element: one row per function, found by
 * the name of the PyTorch function that contains it.
 */
#pragma once

#include "kernels.h"

#define CONSTANTS 3

/* Values that the functor holds beside its code, read at the launch. */
struct constants {
	int mode;
	long double x[CONSTANTS];
	char type; /* in which the operands are computed */
	const char *address;
};

enum holds {
	HOLDS_NOTHING,
	HOLDS_MODE,	   /* an int */
	HOLDS_NUMBERS,	   /* one or more, of the type of the computation */
	HOLDS_OWN,	   /* one or more, of the first operand's own type */
	HOLDS_MODE_NUMBER, /* an int, then a number of the first operand's own type */
	HOLDS_LIMITS,	   /* an int and two numbers */
	HOLDS_ADDRESS,	   /* of an operand that is read where a flag is set */
};

enum gives { GIVES_SAME, GIVES_FLAG, GIVES_SECOND, GIVES_HALF, GIVES_BRAIN, GIVES_NAMED };

struct functor {
	const char *mark;
	int operands;
	enum holds holds;
	int numbers; /* numbers that it holds */
	enum gives gives;
	long double (*compute)(const struct constants *c, const long double *x);
};

/* The row for a functor's name and number of operands (-1: any), NULL if it is not known. */
const struct functor *functor_find(struct text name, int operands);
/* Reads the values that the functor holds; returns its size in bytes. */
size_t functor_read(const struct functor *f, struct constants *c, const char *at, char own);
