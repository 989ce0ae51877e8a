/* SPDX-License-Identifier: Apache-2.0
 *
 * The input of CUB's kernels: an address, or a structure that computes each element. Its type shows
 * which.
 */
#pragma once

#include "kernels.h"
#include "numbers.h"
#include "view.h"

struct iterator {
	const void *base; /* NULL: it counts from `start` */
	char type;
	bool flags; /* an element reads as whether it is not zero */
	int64_t start;
};

/* Reads argument i of a call; false if its type is not known. */
bool iterator_read(struct iterator *it, const struct call *c, int i);
/* Its first n elements, freed by the caller; NULL if they are too many or not all known. */
struct value *iterator_known(const struct iterator *it, int64_t n);
/* Whether they are a mask that is too large to read and is assumed to be all true. */
bool iterator_all_true(const struct iterator *it, int64_t n);
