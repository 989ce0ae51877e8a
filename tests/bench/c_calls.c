/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same C calls for recorders of the heap and of the device: pairs of an allocation and its free
 * from ten places, twenty C frames deep, on any number of threads at once. Says the CPU time of a
 * pair (the best burst of each thread, their mean), so that other work on the machine hardly shows.
 * Loaded by calls.py.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH  20
#define BURSTS 60
#define PAIRS  500
#define MOST   64

double calls(int device, int threads);
extern int cudaMalloc(void **p, size_t n) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));

static int on_device;
static pthread_barrier_t all;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline __attribute__((always_inline)) void pair(size_t n)
{
	void *p = NULL;

	if (on_device) {
		cudaMalloc(&p, n);
		cudaFree(p);
	} else {
		p = malloc(n);
		__asm__ volatile("" : "+r"(p));
		free(p);
	}
}

#define PLACE(n)                                             \
	static __attribute__((noinline)) void place##n(void) \
	{                                                    \
		pair(1024 + 16 * n);                         \
		__asm__ volatile("");                        \
	}
#define PLACES(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9)
PLACES(PLACE)

static double bursts(void)
{
#define NAME(n) place##n,
	static void (*const places[])(void) = { PLACES(NAME) };
	const struct timespec pause = { 0, 3000000 }; /* recorders must keep up */
	uint64_t best = UINT64_MAX;

	for (int burst = 0; burst < BURSTS; burst++) {
		uint64_t start = now();

		for (int i = 0; i < PAIRS; i++)
			places[i % 10]();
		start = now() - start;
		best = start < best ? start : best;
		nanosleep(&pause, NULL);
	}
	return (double)best / PAIRS;
}

static __attribute__((noinline)) double at_depth(int depth)
{
	volatile double result = depth ? at_depth(depth - 1) : bursts();

	return result;
}

static void *run(void *result)
{
	pthread_barrier_wait(&all);
	*(double *)result = at_depth(DEPTH);
	return NULL;
}

/* Nanoseconds of a pair. No threads: on the calling one, below what called it. */
double calls(int device, int threads)
{
	static double results[MOST];
	pthread_t t[MOST];
	double sum = 0;

	on_device = device;
	if (threads < 1)
		return at_depth(DEPTH);
	if (threads > MOST)
		return -1;
	pthread_barrier_init(&all, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, run, &results[i]);
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		sum += results[i];
	}
	return sum / threads;
}
