/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one captured event costs, by part: nanoseconds for gmt_capture with and without stacks, at
 * several native depths. Build and run: `make build/bench_capture && build/bench_capture` (in a
 * directory that can be written; it leaves a recording there).
 */
#include "../../format/record.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 200000

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* At most 2000 events a millisecond, as a busy training run has them, so that the drain keeps up.
 */
static double measure(uint16_t kind, bool deeper);
void bench_event(uint16_t kind, uint64_t i); /* entry.c */
void gpumemtrace_pause(void);
void gpumemtrace_resume(void);

static __attribute__((noinline)) void one_event(uint16_t kind, uint64_t i)
{
	bench_event(kind, i);
	__asm__ volatile("");
}

static __attribute__((noinline)) void one_deeper(uint16_t kind, uint64_t i)
{
	one_event(kind, i);
	__asm__ volatile("");
}

static double measure(uint16_t kind, bool deeper)
{
	uint64_t best = UINT64_MAX;

	for (int burst = 0; burst < 100; burst++) {
		const struct timespec pause = { 0, 1000000 };
		uint64_t start = now();

		for (uint64_t i = 0; i < ROUNDS / 100; i++)
			deeper &&i % 2 ? one_deeper(kind, i) : one_event(kind, i);
		start = now() - start;
		best = start < best ? start : best;
		nanosleep(&pause, NULL);
	}
	return (double)best / (ROUNDS / 100);
}

static __attribute__((noinline)) double at_depth(int depth, uint16_t kind, bool deeper)
{
	volatile double result;

	if (depth == 0)
		return measure(kind, deeper);
	result = at_depth(depth - 1, kind, deeper);
	return result;
}

static double paused(int depth)
{
	double ns;

	gpumemtrace_pause();
	ns = at_depth(depth, GMT_BLOCK_ALLOC, false);
	gpumemtrace_resume();
	return ns;
}

int main(void)
{
	static const int depths[] = { 1, 10, 40, 100 };

	printf("%6s %14s %14s %14s %14s   (ns an event)\n", "depth", "no stack", "same stack",
	       "alternating", "paused");
	for (unsigned i = 0; i < 4; i++)
		printf("%6d %14.0f %14.0f %14.0f %14.1f\n", depths[i],
		       at_depth(depths[i], GMT_TAG_LEAF, false),
		       at_depth(depths[i], GMT_BLOCK_ALLOC, false),
		       at_depth(depths[i], GMT_BLOCK_ALLOC, true), paused(depths[i]));
	return 0;
}
