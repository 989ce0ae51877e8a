/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that no one sets: for waits, and for the times of events (format/FORMAT.md). */
#pragma once

#include "usual.h"

#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static inline double now_seconds(void)
{
	return (double)now_ns() / 1e9;
}
