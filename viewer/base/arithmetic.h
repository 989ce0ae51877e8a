/* SPDX-License-Identifier: Apache-2.0 */
/* Minimum, maximum and similar functions of unsigned integers. */
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

/* Returns n - by, or 0 if n is smaller. */
static inline uint64_t arithmetic_beyond(uint64_t n, uint64_t by)
{
	return n > by ? n - by : 0;
}

/* The base-2 logarithm of n, rounded down; 0 for 0. */
static inline unsigned arithmetic_log2(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n | 1);
}
