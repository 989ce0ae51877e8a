/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account that random_calls keeps of what it holds: by the results of the calls and the words
 * of CUDA's documentation alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#pragma weak cudaMalloc
#pragma weak cudaMallocPitch
#pragma weak cudaFree
#pragma weak cudaMallocManaged
#pragma weak cudaMallocHost
#pragma weak cudaFreeHost
#pragma weak cudaHostRegister
#pragma weak cudaHostUnregister
#pragma weak cudaMallocAsync
#pragma weak cudaMallocFromPoolAsync
#pragma weak cudaFreeAsync
#pragma weak cudaMallocArray
#pragma weak cudaFreeArray
#pragma weak cudaMemGetInfo
#pragma weak cudaMemPoolCreate
#pragma weak cudaMemPoolDestroy
#pragma weak cudaMemPoolTrimTo
#pragma weak cudaMemPoolGetAttribute
#pragma weak cudaDeviceGetDefaultMemPool
#pragma weak cudaDeviceSynchronize
#pragma weak cudaDeviceReset
#pragma weak cudaSetDevice
#pragma weak cudaGetLastError
#pragma weak cudaStreamCreateWithFlags
#pragma weak cudaStreamBeginCapture
#pragma weak cudaStreamEndCapture
#pragma weak cudaStreamSynchronize
#pragma weak cudaGraphInstantiate
#pragma weak cudaGraphLaunch
#pragma weak cudaGraphDestroy
#pragma weak cudaGraphExecDestroy
#pragma weak cudaDeviceGetGraphMemAttribute
#pragma weak cudaDeviceGraphMemTrim
#pragma weak cuMemAlloc_v2
#pragma weak cuMemFree_v2
#pragma weak cuMemAllocManaged
#pragma weak cuMemAllocHost_v2
#pragma weak cuMemCreate
#pragma weak cuMemRelease
#pragma weak cuMemAddressReserve
#pragma weak cuMemAddressFree
#pragma weak cuMemMap
#pragma weak cuMemUnmap
#pragma weak cuMemRetainAllocationHandle
#pragma weak cuMemExportToShareableHandle
#pragma weak cuMemImportFromShareableHandle
#pragma weak cuCtxCreate_v4
#pragma weak cuCtxDestroy_v2
#pragma weak cuCtxPushCurrent_v2
#pragma weak cuCtxPopCurrent_v2
#pragma weak cuDevicePrimaryCtxReset_v2

#define DEVICES	     2
#define BLOCKS	     256
#define CONTEXTS     4
#define MIB	     ((size_t)1 << 20)
#define PAGE	     (2 * MIB) /* of the device */
#define WHOLE(bytes) (((bytes) + PAGE - 1) / PAGE * PAGE)

enum kind { LINEAR, ASYNC, POOLED, MANAGED, PINNED, REGISTERED, ARRAY, PHYSICAL, GRAPH };

/* A context of the program's own; that of block.context NULL is the device's primary one. */
struct context {
	CUcontext handle;
	int device;
};

struct block {
	enum kind kind;
	int device;
	CUcontext context;
	void *p; /* address, array; of physical memory its addresses */
	size_t bytes;
	bool mapped;
	unsigned handles; /* of physical memory, not released */
	CUmemGenericAllocationHandle handle[2];
};

struct account {
	uint64_t now, count, peak, peak_count; /* of device memory that one call gave */
	size_t primary;			       /* bytes that the primary context takes */
};

static struct block live[BLOCKS];
static size_t lives, contexts;
static struct context context[CONTEXTS];
static struct account account[DEVICES];
static size_t context_bytes; /* of one of the program's own */
static long at;		     /* number of the operation */
static const char *doing;

__attribute__((noreturn)) static void wrong(const char *what, long long is, long long should)
{
	fprintf(stderr, "operation %ld, %s: %s: %lld, not %lld\n", at, doing, what, is, should);
	exit(1);
}

#define SAME(is, should) ((long long)(is) == (long long)(should) ? (void)0 : wrong(#is, is, should))
#define MUST(call)	 SAME(call, 0)
#define REFUSED(call)                                           \
	do {                                                    \
		if (!(call))                                    \
			wrong("was not refused: " #call, 0, 1); \
		cudaGetLastError();                             \
	} while (0)

/* The device's memory as a report counts it: what managed and pinned memory takes moves about. */
static bool is_counted(enum kind k)
{
	return k != MANAGED && k != PINNED && k != REGISTERED;
}

/* Such memory ends with its context. Pools and physical memory belong to the device. */
static bool is_of_context(enum kind k)
{
	return k == LINEAR || k == MANAGED || k == PINNED || k == REGISTERED || k == ARRAY;
}

static void born(struct block b)
{
	struct account *a = &account[b.device];

	live[lives++] = b;
	if (!is_counted(b.kind))
		return;
	a->now += b.bytes;
	a->count++;
	if (a->now > a->peak) {
		a->peak = a->now;
		a->peak_count = a->count;
	}
}

static void died(size_t i)
{
	struct account *a = &account[live[i].device];

	if (is_counted(live[i].kind)) {
		a->now -= live[i].bytes;
		a->count--;
	}
	live[i] = live[--lives];
}

/* All that one context of a device has, and all that is the device's if it is the primary one. */
static void died_with(int device, CUcontext c)
{
	for (size_t i = lives; i--;)
		if (live[i].device == device && live[i].context == c &&
		    (is_of_context(live[i].kind) || !c))
			died(i);
}

/* ---- what the device says ---- */

static size_t in_use(int device)
{
	size_t f, t;

	MUST(cudaSetDevice(device));
	MUST(cudaMemGetInfo(&f, &t));
	return t - f;
}

/* Bytes that a device takes for the account: exactly, but for small blocks, which share pages. */
static size_t expected(int device, size_t *spare)
{
	size_t all = account[device].primary, small = 0, n = 0;

	for (size_t i = 0; i < contexts; i++)
		all += context[i].device == device ? context_bytes : 0;
	for (const struct block *b = live; b < live + lives; b++) {
		bool takes = b->kind == LINEAR || b->kind == MANAGED || b->kind == ARRAY ||
			     b->kind == PHYSICAL;

		if (b->device != device || !takes)
			continue;
		if (b->bytes <= MIB && b->kind != MANAGED) {
			small += b->bytes;
			n++;
		} else {
			all += WHOLE(b->bytes);
		}
	}
	*spare = n * PAGE;
	return all + small / PAGE * PAGE;
}

static uint64_t pool_attribute(cudaMemPool_t pool, enum cudaMemPoolAttr which)
{
	uint64_t value;

	MUST(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

static uint64_t graph_attribute(int device, enum cudaGraphMemAttributeType which)
{
	uint64_t value;

	MUST(cudaDeviceGetGraphMemAttribute(device, which, &value));
	return value;
}

/* Used bytes of a pool: those of its blocks, each with at most a page more. */
static void check_used(uint64_t used, int device, enum kind kind)
{
	uint64_t bytes = 0, n = 0;

	for (const struct block *b = live; b < live + lives; b++)
		if (b->device == device && b->kind == kind) {
			bytes += b->bytes;
			n++;
		}
	if (used < bytes || used > bytes + n * PAGE)
		wrong("used by a pool", (long long)used, (long long)bytes);
}

static void check_device(int device, cudaMemPool_t made)
{
	size_t spare, should, is = in_use(device);
	uint64_t graphs = graph_attribute(device, cudaGraphMemAttrReservedMemCurrent);
	cudaMemPool_t pool;

	should = expected(device, &spare) + graphs;
	MUST(cudaDeviceGetDefaultMemPool(&pool, device));
	should += pool_attribute(pool, cudaMemPoolAttrReservedMemCurrent);
	check_used(pool_attribute(pool, cudaMemPoolAttrUsedMemCurrent), device, ASYNC);
	check_used(graph_attribute(device, cudaGraphMemAttrUsedMemCurrent), device, GRAPH);
	if (made) {
		should += pool_attribute(made, cudaMemPoolAttrReservedMemCurrent);
		check_used(pool_attribute(made, cudaMemPoolAttrUsedMemCurrent), device, POOLED);
	}
	if (is < should || is > should + spare + PAGE) /* nodes of graphs take part of a page */
		wrong("bytes in use", (long long)is, (long long)should);
}
