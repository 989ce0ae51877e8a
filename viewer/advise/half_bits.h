/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "advise.h"

enum half {
	HALF_NOT,
	HALF_PERHAPS, /* of its bits */
	HALF_SURE,
	HALF_GONE,   /* autocast's copy of such a weight, which is no longer made */
	HALF_WEIGHT, /* narrow from the first pass on: a weight made on the device */
	HALF_BEFORE, /* narrow from its birth on: a weight copied from the host */
};

struct half_bits {
	uint8_t *of; /* by life: enum half */
	size_t size;
	uint64_t first;	  /* number of the first pass */
	uint64_t largest; /* bytes of the largest such weight, which is there twice while it is
			     converted */
};

/* False: there are too few such weights. */
bool half_bits_find(struct half_bits *h, struct advise *a);
void half_bits_free(struct half_bits *h);
