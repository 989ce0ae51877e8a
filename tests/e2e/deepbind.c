/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded with RTLD_DEEPBIND and so reaches CUDA past every preloaded hook.
 */
#include <stddef.h>

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cuMemAlloc_v2(unsigned long *p, size_t n);
int cuMemFree_v2(unsigned long p);
int cudaMallocManaged(void **p, size_t n, unsigned flags);

/* Writes down what it gave: three addresses. 0 = all went well. */
int deepbind_work(unsigned long *given);

int deepbind_work(unsigned long *given)
{
	void *p, *refused;

	if (cudaMalloc(&p, 1111))
		return 1;
	given[0] = (unsigned long)p;
	if (cudaFree(p) || cuMemAlloc_v2(&given[1], 2222) || cuMemFree_v2(given[1]))
		return 2;
	if (cudaMallocManaged(&p, 3333, 1))
		return 3;
	given[2] = (unsigned long)p;
	if (cudaMalloc(&refused, (size_t)1 << 50) != 2)
		return 4;
	return cudaFree(p) || cudaFree(p) != 1; /* the second one is refused */
}
