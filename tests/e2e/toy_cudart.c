/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA runtime of a few functions for programs that test the recorder, not the device. Built as a
 * shared library by tests/e2e/toy.py. No address is used twice. An allocation of TOY_ESCAPE bytes
 * calls toy_escape, which may leave by any way it likes. toy_binding does what PyTorch's C++
 * functions for Python do: it has a guard on its stack while it runs.
 */
#include <stddef.h>
#include <stdint.h>

#define TOY_ESCAPE 13

void (*toy_escape)(void);
static uintptr_t next = 0x700000000000;

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaGetDevice(int *device);
void _ZN5torch16PyWarningHandlerC1Ev(void *guard);
void _ZN5torch16PyWarningHandlerD1Ev(void *guard);
void toy_binding(size_t first, size_t second, void (*between)(void), size_t third);

int cudaMalloc(void **p, size_t n)
{
	if (n == TOY_ESCAPE && toy_escape)
		toy_escape();
	*p = (void *)__atomic_fetch_add(&next, (n + 511) & ~(size_t)511, __ATOMIC_RELAXED);
	return 0;
}

int cudaFree(void *p)
{
	(void)p;
	return 0;
}

int cudaGetDevice(int *device)
{
	*device = 0;
	return 0;
}

void _ZN5torch16PyWarningHandlerC1Ev(void *guard)
{
	*(int *)guard = 1;
}

void _ZN5torch16PyWarningHandlerD1Ev(void *guard)
{
	*(int *)guard = 0;
}

void toy_binding(size_t first, size_t second, void (*between)(void), size_t third)
{
	int guard;
	void *p;

	_ZN5torch16PyWarningHandlerC1Ev(&guard);
	cudaMalloc(&p, first);
	cudaMalloc(&p, second);
	if (between)
		between();
	cudaMalloc(&p, third);
	_ZN5torch16PyWarningHandlerD1Ev(&guard);
}
