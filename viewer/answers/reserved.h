/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of a device's reserved memory, the line behind it, and the growth per step. */
#pragma once

#include "../moments/timeline.h"
#include "private_pools.h"

struct reserved_peak {
	uint64_t bytes, seq, time_ns;
	struct pool_sums pools; /* at that moment */
	struct owner owner;	/* line of the largest pools if all pools are half of it, else the
				 * line whose request made the cache that large */
};

void reserved_find(struct reserved_peak *out, struct timeline *t, int device);
/* "13.1 GiB of it lie in private pools of captured CUDA graphs (main train.py:35)"; or
 * "it was largest when main train.py:35 allocated". Returns buf. */
const char *reserved_words(const struct reserved_peak *p, char *buf, size_t room);
#define RESERVED_WORDS 500

/* Bytes by which a cache of that size can differ between two runs of one program, because it
 * depends on the order of requests. */
uint64_t reserved_varies(uint64_t bytes);

/* Bytes per step by which reserved memory grew over the last three quarters of the steps; 0 if it
 * did not grow in each third of them, or there are too few steps. */
uint64_t reserved_growth(const struct timeline *t);
