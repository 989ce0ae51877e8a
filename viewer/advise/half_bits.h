/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "advise.h"

enum half {
	HALF_NOT,
	HALF_PERHAPS, /* of its bits */
	HALF_SURE,
	HALF_GONE,   /* a copy that autocast made of such a weight */
	HALF_WEIGHT, /* made on the device: from the first pass on */
	HALF_BEFORE, /* a weight that comes from the host: narrow before that */
};

struct half_bits {
	uint8_t *of; /* of each life: enum half */
	size_t size;
	uint64_t first;	  /* pass */
	uint64_t largest; /* such weight: both copies are there while it is converted */
};

/* False: there are too few of such weights. */
bool half_bits_find(struct half_bits *h, struct advise *a);
void half_bits_free(struct half_bits *h);
