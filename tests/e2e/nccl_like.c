/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with a runtime of its own inside, all hidden: it opens the driver and asks it for its
 * functions by name, version and default stream, as NVIDIA's static runtime does.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

API unsigned long nccl_like_give(size_t n);
API void nccl_like_take(unsigned long p);

static int (*get)(const char *, void **, int, uint64_t, int *);

static void *driver(const char *name, int version)
{
	void *p = NULL;
	int status;

	if (!get)
		*(void **)&get =
			dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "cuGetProcAddress_v2");
	get("", &p, 0, 0, &status);
	return get(name, &p, version, 0, &status) ? NULL : p;
}

static int cudaMalloc(unsigned long *p, size_t n)
{
	int (*init)(unsigned) = (int (*)(unsigned))driver("cuInit", 2000);
	int (*retain)(void **, int) =
		(int (*)(void **, int))driver("cuDevicePrimaryCtxRetain", 7000);
	int (*set)(void *) = (int (*)(void *))driver("cuCtxSetCurrent", 4000);
	int (*alloc)(unsigned long *, size_t) =
		(int (*)(unsigned long *, size_t))driver("cuMemAlloc", 3020);
	void *context;

	return init(0) || retain(&context, 0) || set(context) || alloc(p, n);
}

unsigned long nccl_like_give(size_t n)
{
	unsigned long p = 0;

	return cudaMalloc(&p, n) ? 0 : p;
}

void nccl_like_take(unsigned long p)
{
	((int (*)(unsigned long))driver("cuMemFree", 3020))(p);
}
