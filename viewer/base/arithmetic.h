/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions about numbers. */
#pragma once

#include "usual.h"

static inline uint64_t arithmetic_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t arithmetic_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* By how much n is more; 0 if it is not. */
static inline uint64_t arithmetic_beyond(uint64_t n, uint64_t by)
{
	return n > by ? n - by : 0;
}

/* Rounded down; of 0 it is 0. */
static inline unsigned arithmetic_log2(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n | 1);
}
