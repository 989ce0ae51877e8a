/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs: cuda
 *
 * Calls the functions that give and take memory and says on stdout what each did: kind, function,
 * address, size. The recording must say the same, in the same order. With the word "lookup" the
 * driver's functions are looked up by the runtime, else they are called by their exported names.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#pragma weak cudaMalloc
#pragma weak cudaFree
#pragma weak cudaMallocPitch
#pragma weak cudaMalloc3D
#pragma weak cudaMallocManaged
#pragma weak cudaMallocHost
#pragma weak cudaHostAlloc
#pragma weak cudaFreeHost
#pragma weak cudaHostRegister
#pragma weak cudaHostUnregister
#pragma weak cudaMallocAsync
#pragma weak cudaMallocFromPoolAsync
#pragma weak cudaFreeAsync
#pragma weak cudaMemPoolCreate
#pragma weak cudaMemPoolTrimTo
#pragma weak cudaMemPoolDestroy
#pragma weak cudaMallocArray
#pragma weak cudaMalloc3DArray
#pragma weak cudaMallocMipmappedArray
#pragma weak cudaFreeArray
#pragma weak cudaFreeMipmappedArray
#pragma weak cudaStreamCreate
#pragma weak cudaDeviceReset
#pragma weak cudaGetDriverEntryPointByVersion
#pragma weak cudaGetLastError

static void did(const char *kind, const char *function, const void *address, size_t size)
{
	printf("%s %s %#lx %zu\n", kind, function, (unsigned long)address, size);
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %d\n", what, rc);
	exit(1);
}

#define MUST(...) must(__VA_ARGS__, #__VA_ARGS__)

/* Runs a runtime call that gives `p`, then says so. */
#define GAVE(function, size, ...)                       \
	do {                                            \
		must(function(__VA_ARGS__), #function); \
		did("mem_alloc", #function, p, size);   \
	} while (0)
#define TAKES(function, ...)                            \
	do {                                            \
		did("mem_free", #function, p, 0);       \
		must(function(__VA_ARGS__), #function); \
	} while (0)

static void linear(void)
{
	struct cudaPitchedPtr pitched;
	size_t pitch;
	void *p;

	GAVE(cudaMalloc, 1000, &p, 1000);
	TAKES(cudaFree, p);
	MUST(cudaFree(NULL)); /* says nothing */
	MUST(cudaMallocPitch(&p, &pitch, 100, 7));
	did("mem_alloc", "cudaMallocPitch", p, pitch * 7);
	TAKES(cudaFree, p);
	MUST(cudaMalloc3D(&pitched, (struct cudaExtent){ 100, 5, 3 }));
	did("mem_alloc", "cudaMalloc3D", p = pitched.ptr, pitched.pitch * 15);
	TAKES(cudaFree, p);
	GAVE(cudaMallocManaged, 4096, &p, 4096, cudaMemAttachGlobal);
	TAKES(cudaFree, p);
}

static void host(void)
{
	static char mine[8192];
	void *p;

	GAVE(cudaMallocHost, 5000, &p, 5000);
	TAKES(cudaFreeHost, p);
	GAVE(cudaHostAlloc, 6000, &p, 6000, cudaHostAllocDefault);
	TAKES(cudaFreeHost, p);
	p = mine;
	GAVE(cudaHostRegister, sizeof(mine), p, sizeof(mine), cudaHostRegisterDefault);
	TAKES(cudaHostUnregister, p);
}

static void pools(void)
{
	struct cudaMemPoolProps props = { .allocType = cudaMemAllocationTypePinned,
					  .location = { .type = cudaMemLocationTypeDevice } };
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *p;

	MUST(cudaStreamCreate(&stream));
	GAVE(cudaMallocAsync, 3000, &p, 3000, stream);
	TAKES(cudaFreeAsync, p, stream);
	MUST(cudaMemPoolCreate(&pool, &props));
	did("pool_create", "cudaMemPoolCreate", pool, 0);
	GAVE(cudaMallocFromPoolAsync, 3100, &p, 3100, pool, stream);
	TAKES(cudaFreeAsync, p, stream);
	did("pool_trim", "cudaMemPoolTrimTo", pool, 0);
	MUST(cudaMemPoolTrimTo(pool, 0));
	did("pool_destroy", "cudaMemPoolDestroy", pool, 0);
	MUST(cudaMemPoolDestroy(pool));
}

static void arrays(void)
{
	struct cudaChannelFormatDesc d = { 32, 32, 0, 0, cudaChannelFormatKindFloat };
	cudaMipmappedArray_t mipmap;
	cudaArray_t array;
	void *p;

	MUST(cudaMallocArray(&array, &d, 64, 32, 0));
	did("mem_alloc", "cudaMallocArray", p = array, 8 * 64 * 32);
	TAKES(cudaFreeArray, array);
	MUST(cudaMalloc3DArray(&array, &d, (struct cudaExtent){ 16, 8, 4 }, 0));
	did("mem_alloc", "cudaMalloc3DArray", p = array, 8 * 16 * 8 * 4);
	TAKES(cudaFreeArray, array);
	MUST(cudaMallocMipmappedArray(&mipmap, &d, (struct cudaExtent){ 16, 16, 0 }, 3, 0));
	did("mem_alloc", "cudaMallocMipmappedArray", p = mipmap, 8 * (256 + 64 + 16));
	TAKES(cudaFreeMipmappedArray, mipmap);
}

static void refused(void)
{
	void *p;

	if (cudaMalloc(&p, (size_t)1 << 50) != cudaErrorMemoryAllocation)
		exit(1);
	did("mem_fail", "cudaMalloc", NULL, (size_t)1 << 50);
	if (cudaGetLastError() != cudaErrorMemoryAllocation)
		exit(2);
}

/* ---- the driver ---- */

static int by_name;

static void *entry(const char *name, int version, void *exported)
{
	enum cudaDriverEntryPointQueryResult found;
	void *p = NULL;

	if (!by_name)
		return exported;
	MUST(cudaGetDriverEntryPointByVersion(name, &p, (unsigned)version, cudaEnableDefault,
					      &found));
	if (p == NULL || found != cudaDriverEntryPointSuccess)
		exit(3);
	return p;
}

#pragma weak cuMemAlloc_v2
#pragma weak cuMemFree_v2
#pragma weak cuMemAllocPitch_v2
#pragma weak cuMemAllocManaged
#pragma weak cuMemHostAlloc
#pragma weak cuMemFreeHost
#pragma weak cuMemAllocAsync
#pragma weak cuMemFreeAsync
#pragma weak cuMemAddressReserve
#pragma weak cuMemAddressFree
#pragma weak cuMemCreate
#pragma weak cuMemRelease
#pragma weak cuMemRetainAllocationHandle
#pragma weak cuMemMap
#pragma weak cuMemUnmap
#pragma weak cuArrayCreate_v2
#pragma weak cuArrayDestroy
#pragma weak cuCtxCreate_v4
#pragma weak cuCtxDestroy_v2

#define DRIVER(name, version, exported) \
	typeof(&exported) do_##name = (typeof(&exported))entry(#name, version, (void *)exported)

static void driver_linear(void)
{
	DRIVER(cuMemAlloc, 12000, cuMemAlloc_v2);
	DRIVER(cuMemFree, 12000, cuMemFree_v2);
	DRIVER(cuMemAllocPitch, 13000, cuMemAllocPitch_v2);
	DRIVER(cuMemHostAlloc, 12000, cuMemHostAlloc);
	DRIVER(cuMemFreeHost, 12000, cuMemFreeHost);
	CUdeviceptr p;
	size_t pitch;
	void *h;

	MUST(do_cuMemAlloc(&p, 7000));
	did("mem_alloc", "cuMemAlloc_v2", (void *)p, 7000);
	did("mem_free", "cuMemFree_v2", (void *)p, 0);
	MUST(do_cuMemFree(p));
	MUST(do_cuMemAllocPitch(&p, &pitch, 100, 3, 4));
	did("mem_alloc", "cuMemAllocPitch_v2", (void *)p, pitch * 3);
	did("mem_free", "cuMemFree_v2", (void *)p, 0);
	MUST(do_cuMemFree(p));
	MUST(do_cuMemHostAlloc(&h, 4000, 0));
	did("mem_alloc", "cuMemHostAlloc", h, 4000);
	did("mem_free", "cuMemFreeHost", h, 0);
	MUST(do_cuMemFreeHost(h));
}

static void driver_async(void)
{
	DRIVER(cuMemAllocAsync, 12000, cuMemAllocAsync);
	DRIVER(cuMemFreeAsync, 12000, cuMemFreeAsync);
	CUdeviceptr p;

	MUST(do_cuMemAllocAsync(&p, 9000, NULL));
	did("mem_alloc", "cuMemAllocAsync", (void *)p, 9000);
	did("mem_free", "cuMemFreeAsync", (void *)p, 0);
	MUST(do_cuMemFreeAsync(p, NULL));
}

static void driver_apart(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	const size_t n = 2 << 20;
	DRIVER(cuMemAddressReserve, 12000, cuMemAddressReserve);
	DRIVER(cuMemAddressFree, 12000, cuMemAddressFree);
	DRIVER(cuMemCreate, 12000, cuMemCreate);
	DRIVER(cuMemRelease, 12000, cuMemRelease);
	DRIVER(cuMemRetainAllocationHandle, 12000, cuMemRetainAllocationHandle);
	DRIVER(cuMemMap, 12000, cuMemMap);
	DRIVER(cuMemUnmap, 12000, cuMemUnmap);
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr p;

	MUST(do_cuMemAddressReserve(&p, 2 * n, 0, 0, 0));
	did("va_reserve", "cuMemAddressReserve", (void *)p, 2 * n);
	MUST(do_cuMemCreate(&handle, n, &prop, 0));
	did("phys_create", "cuMemCreate", (void *)handle, n);
	MUST(do_cuMemMap(p, n, 0, handle, 0));
	did("map", "cuMemMap", (void *)p, n);
	MUST(do_cuMemRetainAllocationHandle(&again, (void *)p));
	did("phys_retain", "cuMemRetainAllocationHandle", (void *)again, 0);
	did("phys_release", "cuMemRelease", (void *)again, 0);
	MUST(do_cuMemRelease(again));
	did("unmap", "cuMemUnmap", (void *)p, n);
	MUST(do_cuMemUnmap(p, n));
	did("phys_release", "cuMemRelease", (void *)handle, 0);
	MUST(do_cuMemRelease(handle));
	did("va_release", "cuMemAddressFree", (void *)p, 2 * n);
	MUST(do_cuMemAddressFree(p, 2 * n));
}

static void driver_arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {
		.Width = 30, .Height = 20, .Format = CU_AD_FORMAT_HALF, .NumChannels = 4
	};
	DRIVER(cuArrayCreate, 12000, cuArrayCreate_v2);
	DRIVER(cuArrayDestroy, 12000, cuArrayDestroy);
	CUarray array;

	MUST(do_cuArrayCreate(&array, &d));
	did("mem_alloc", "cuArrayCreate_v2", array, 30 * 20 * 2 * 4);
	did("mem_free", "cuArrayDestroy", array, 0);
	MUST(do_cuArrayDestroy(array));
}

static void driver_contexts(void)
{
	DRIVER(cuCtxCreate, 13000, cuCtxCreate_v4);
	DRIVER(cuCtxDestroy, 12000, cuCtxDestroy_v2);
	CUcontext context;

	MUST(do_cuCtxCreate(&context, NULL, 0, 0));
	did("ctx_create", "cuCtxCreate_v4", context, 0);
	did("ctx_destroy", "cuCtxDestroy_v2", context, 0);
	MUST(do_cuCtxDestroy(context));
}

int main(int argc, char **argv)
{
	by_name = argc > 1 && !strcmp(argv[1], "lookup");
	linear();
	host();
	pools();
	arrays();
	refused();
	driver_linear();
	driver_async();
	driver_apart();
	driver_arrays();
	driver_contexts();
	did("ctx_destroy", "cudaDeviceReset", NULL, 0);
	MUST(cudaDeviceReset());
	return 0;
}
