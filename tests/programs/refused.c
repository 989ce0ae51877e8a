/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs: cuda
 *
 * Calls that free, unmap or end something that is not theirs to free, and the same rightly. Says of
 * each on stdout what came of it: function, address, result. At the end everything that was refused
 * is still there: "left" with its address and size.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#pragma weak cudaMalloc
#pragma weak cudaFree
#pragma weak cudaMallocHost
#pragma weak cudaFreeHost
#pragma weak cudaHostRegister
#pragma weak cudaHostUnregister
#pragma weak cudaMallocAsync
#pragma weak cudaFreeAsync
#pragma weak cudaMallocArray
#pragma weak cudaFreeArray
#pragma weak cudaMemPoolDestroy
#pragma weak cudaIpcCloseMemHandle
#pragma weak cudaStreamCreate
#pragma weak cudaStreamBeginCapture
#pragma weak cudaStreamEndCapture
#pragma weak cuMemFree_v2
#pragma weak cuMemCreate
#pragma weak cuMemAddressReserve
#pragma weak cuMemAddressFree
#pragma weak cuMemMap
#pragma weak cuMemUnmap
#pragma weak cuMemRelease
#pragma weak cuCtxDestroy_v2
#pragma weak cuDevicePrimaryCtxReset_v2
#pragma weak cuModuleUnload

#define MIB (1ull << 20)

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %d\n", what, rc);
	exit(1);
}

#define MUST(...) must(__VA_ARGS__, #__VA_ARGS__)

/* `address` is that of the record. */
#define TRY(address, function, ...)                                            \
	printf("%s %#lx %d\n", #function, (unsigned long)(uintptr_t)(address), \
	       (int)function(__VA_ARGS__))

static void left(const void *p, size_t size)
{
	printf("left %#lx %zu\n", (unsigned long)(uintptr_t)p, size);
}

static void linear(void)
{
	void *device, *host, *registered = aligned_alloc(4096, MIB), *gone, *async;
	char inside;

	MUST(cudaMalloc(&device, 3 * MIB));
	MUST(cudaMalloc(&gone, MIB));
	MUST(cudaMallocHost(&host, 2 * MIB));
	MUST(cudaHostRegister(registered, MIB, 0));
	MUST(cudaMallocAsync(&async, 5 * MIB, NULL));
	TRY(gone, cudaFree, gone);
	TRY(gone, cudaFree, gone);
	TRY(host, cudaFree, host);
	TRY((char *)device + 1, cudaFree, (char *)device + 1);
	TRY(&inside, cudaFree, &inside);
	TRY(device, cudaFreeHost, device);
	TRY(registered, cudaFreeHost, registered);
	TRY(host, cudaHostUnregister, host);
	TRY((char *)async + 512, cudaFreeAsync, (char *)async + 512, NULL);
	TRY((char *)device + 1, cuMemFree_v2, (CUdeviceptr)device + 1);
	left(device, 3 * MIB);
	left(async, 5 * MIB);
}

static void captured(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	void *p;

	MUST(cudaMalloc(&p, 7 * MIB));
	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	TRY(p, cudaFree, p);
	cudaStreamEndCapture(stream, &graph);
	left(p, 7 * MIB);
}

static void physical(void)
{
	CUmemAllocationProp props = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	MUST(cuMemCreate(&handle, 16 * MIB, &props, 0));
	MUST(cuMemAddressReserve(&at, 32 * MIB, 0, 0, 0));
	MUST(cuMemMap(at, 16 * MIB, 0, handle, 0));
	TRY(handle, cuMemRelease, handle);
	TRY(handle, cuMemRelease, handle);
	TRY(at, cuMemUnmap, at, 2 * MIB);
	TRY(at + 2 * MIB, cuMemUnmap, at + 2 * MIB, 14 * MIB);
	TRY(at, cuMemAddressFree, at, 32 * MIB);
	left((void *)handle, 16 * MIB);
}

static void others(void)
{
	void *nothing = (void *)0x1230;

	TRY(nothing, cudaFreeArray, nothing);
	TRY(nothing, cudaMemPoolDestroy, nothing);
	TRY(nothing, cudaIpcCloseMemHandle, nothing);
	TRY(nothing, cuCtxDestroy_v2, nothing);
	TRY(nothing, cuModuleUnload, nothing);
	TRY(0, cuDevicePrimaryCtxReset_v2, 77);
}

int main(void)
{
	linear();
	captured();
	physical();
	others();
	return 0;
}
