/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak with several changes at once: the plans of their findings, merged life by life. Of a
 * life that one change halves and another halves too a quarter is left, and what one takes away
 * another cannot save again. Changes that a recording knows no finding of are made of classes: a
 * batch in parts, weights that are not trained in half of their bits, and updates in the backward
 * pass.
 */
#pragma once

#include "advise.h"

enum { TOGETHER_MOST = 8 }; /* findings of a set */

struct together {
	size_t findings[TOGETHER_MOST]; /* by their places in the list */
	size_t count;
	unsigned parts;		/* of a batch, whose gradients are added up; 1: all of it */
	bool frozen;		/* weights that are not trained, in half of their bits */
	bool in_backward;	/* each weight is updated as soon as it has its gradient */
	uint64_t peak, at_most; /* bytes: between these two */
};

/* Reads "1+3+batch=1/2+frozen+in_backward"; false: it is none. */
bool together_parse(struct together *x, const char *text);
/* Finds the peaks. */
void together_find(struct advise *a, struct together *sets, size_t count);
