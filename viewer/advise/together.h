/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak with several changes at once: the plans of their findings, merged life by life. If two
 * changes each halve a life, a quarter is left; bytes that one change removes are not saved
 * twice. Three changes have no finding and are modelled by class: a batch in parts, frozen
 * weights in half precision, and optimizer updates in the backward pass.
 */
#pragma once

#include "advise.h"

enum { TOGETHER_MOST = 8 }; /* most findings of a set */

struct together {
	size_t findings[TOGETHER_MOST]; /* indices in advise's items */
	size_t count;
	unsigned parts;		/* parts of the batch, with accumulated gradients; 1 = whole */
	bool frozen;		/* frozen weights in half precision */
	bool in_backward;	/* each weight is updated as soon as its gradient is complete */
	uint64_t peak, at_most; /* bytes: lower and upper end */
};

/* Parses "1+3+batch=1/2+frozen+in_backward". False: not of this form. */
bool together_parse(struct together *x, const char *text);
/* Fills in the peaks. */
void together_find(struct advise *a, struct together *sets, size_t count);
