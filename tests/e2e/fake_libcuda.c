/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that knows every function by name and can do none of them. It shows what a real
 * CUDA runtime asks a driver for; the runtime gives up soon after, as it should with a driver that
 * is not NVIDIA's.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOT_SUPPORTED 801

static int stub(void)
{
	return NOT_SUPPORTED;
}

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status);
int cuMemAlloc_v2(void *p, size_t n);
int cuMemAllocAsync_ptsz(void *p, size_t n, void *stream);
int cuNewInNextCuda(void);

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 13050;
	return 0;
}

/* The empty name is the runtime's first question. */
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	(void)flags;
	if (status)
		*status = *name ? 0 : 1;
	*fn = NULL;
	if (!*name)
		return 500;
	*fn = (void *)stub;
	if (version >= 14000) /* has other parameters by then, for all we know */
		*fn = (void *)cuNewInNextCuda;
	else if (!strcmp(name, "cuGetProcAddress"))
		*fn = version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
	else if (!strcmp(name, "cuInit"))
		*fn = (void *)cuInit;
	else if (!strcmp(name, "cuDriverGetVersion"))
		*fn = (void *)cuDriverGetVersion;
	return 0;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, fn, version, flags, NULL);
}

int cuMemAlloc_v2(void *p, size_t n)
{
	(void)p;
	(void)n;
	return NOT_SUPPORTED;
}

int cuMemAllocAsync_ptsz(void *p, size_t n, void *stream)
{
	(void)p;
	(void)n;
	(void)stream;
	return NOT_SUPPORTED;
}

int cuNewInNextCuda(void)
{
	return NOT_SUPPORTED;
}
