/* SPDX-License-Identifier: Apache-2.0 */
/* The most that the framework's cache held on a device, whose that was, and how it grew. */
#pragma once

#include "../moments/timeline.h"
#include "private_pools.h"

struct reserved_peak {
	uint64_t bytes, seq, time_ns;
	struct pool_sums pools; /* then */
	struct owner owner;	/* of most of the pools where they are half of it, else the line
				 * whose request made the cache that large */
};

void reserved_find(struct reserved_peak *out, struct timeline *t, int device);
/* "13.1 GiB of it lie in private pools of captured CUDA graphs (main train.py:35)"; or
 * "it was largest when main train.py:35 allocated". Returns buf. */
const char *reserved_words(const struct reserved_peak *p, char *buf, size_t room);
#define RESERVED_WORDS 500

/* Bytes by which a cache of that size may differ between two runs of one program, because it
 * depends on the order of requests. */
uint64_t reserved_varies(uint64_t bytes);

/* Bytes a step by which the cache grew, in at least half of the steps that are compared: the last
 * three quarters. 0: it did not, or there are too few steps. */
uint64_t reserved_growth(const struct timeline *t);
