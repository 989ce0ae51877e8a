/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of random_calls that give memory, and those that take it back: each call succeeds, and
 * is put to the account.
 */
#pragma once

#include <string.h>
#include <unistd.h>

#include "random_calls.h"

static uint64_t chance;
static const char *groups;
static cudaMemPool_t pools[DEVICES]; /* of the program's own, or NULL */
static cudaStream_t streams[DEVICES];
static struct {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *p;
	size_t bytes;
	bool frees_left;
} kept[DEVICES]; /* a graph that is launched again */

static uint64_t any(uint64_t below)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (chance >> 11) % below;
}

static bool has(const char *group)
{
	const char *found = strstr(groups, group);
	size_t n = strlen(group);

	return found && (found[n] == ',' || !found[n]) && (found == groups || found[-1] == ',');
}

/* Half of them share pages. */
static size_t some_bytes(void)
{
	return any(2) ? 1 + any(MIB) : MIB + 1 + any(32 * MIB);
}

static int some_device(void)
{
	int d = has("devices") ? (int)any(DEVICES) : 0;

	MUST(cudaSetDevice(d));
	return d;
}

/* The index of a live block of that kind, or -1. */
static long some_block(enum kind kind)
{
	for (size_t i = 0, from = lives ? any(lives) : 0; i < lives; i++)
		if (live[(from + i) % lives].kind == kind)
			return (long)((from + i) % lives);
	return -1;
}

/* ---- the same in the primary context, or in one of the program's own ---- */

static struct block enter(enum kind kind)
{
	struct block b = { .kind = kind, .device = some_device(), .bytes = some_bytes() };

	if (contexts && any(2)) {
		const struct context *c = &context[any(contexts)];

		MUST(cuCtxPushCurrent(c->handle));
		b.context = c->handle;
		b.device = c->device;
	}
	return b;
}

static void leave(struct block b)
{
	if (b.context)
		MUST(cuCtxPopCurrent(NULL));
	born(b);
}

static void linear(void)
{
	struct block b = enter(LINEAR);
	size_t pitch;

	if (!any(8) && !b.context) {
		MUST(cudaMallocPitch(&b.p, &pitch, 1 + any(5000), 100));
		b.bytes = pitch * 100;
	} else if (any(2) || b.context) {
		MUST(cuMemAlloc((CUdeviceptr *)&b.p, b.bytes));
	} else {
		MUST(cudaMalloc(&b.p, b.bytes));
	}
	leave(b);
}

/* Many at once, the last first. */
static void churn(void)
{
	size_t n = any(60), before = lives;

	for (size_t i = 0; i < n && lives < BLOCKS - 8; i++)
		linear();
	while (lives > before) {
		MUST(cudaFree(live[lives - 1].p));
		died(lives - 1);
	}
}

static void managed(void)
{
	struct block b = enter(MANAGED);

	MUST(any(2) ? (int)cudaMallocManaged(&b.p, b.bytes, cudaMemAttachGlobal)
		    : (int)cuMemAllocManaged((CUdeviceptr *)&b.p, b.bytes, CU_MEM_ATTACH_GLOBAL));
	leave(b);
}

static void pinned(void)
{
	struct block b = enter(PINNED);

	MUST(any(2) ? (int)cudaMallocHost(&b.p, b.bytes) : (int)cuMemAllocHost(&b.p, b.bytes));
	leave(b);
}

static void registered(void)
{
	static char memory[64][4096] __attribute__((aligned(4096)));
	struct block b = enter(REGISTERED);

	b.p = memory[any(64)];
	b.bytes = sizeof(memory[0]);
	for (size_t i = 0; i < lives; i++)
		if (live[i].p == b.p) {
			REFUSED(cudaHostRegister(b.p, b.bytes, 0));
			if (b.context)
				MUST(cuCtxPopCurrent(NULL));
			return;
		}
	MUST(cudaHostRegister(b.p, b.bytes, 0));
	leave(b);
}

static void array(void)
{
	const struct cudaChannelFormatDesc f = { 32, 0, 0, 0, cudaChannelFormatKindFloat };
	struct block b = enter(ARRAY);
	size_t width = 1 + any(2000), height = 1 + any(1000);

	MUST(cudaMallocArray((cudaArray_t *)&b.p, &f, width, height, 0));
	b.bytes = 4 * width * height;
	leave(b);
}

/* ---- memory of pools ---- */

static void async(void)
{
	struct block b = { .kind = ASYNC, .device = some_device(), .bytes = some_bytes() };

	MUST(cudaMallocAsync(&b.p, b.bytes, any(2) ? streams[b.device] : NULL));
	born(b);
}

static void drop_pool(int device)
{
	if (pools[device])
		MUST(cudaMemPoolDestroy(pools[device]));
	pools[device] = NULL;
}

static void pooled(void)
{
	struct block b = { .kind = POOLED, .device = some_device(), .bytes = some_bytes() };
	struct cudaMemPoolProps p = { .allocType = cudaMemAllocationTypePinned,
				      .location = { .type = cudaMemLocationTypeDevice,
						    .id = b.device } };

	if (!pools[b.device])
		MUST(cudaMemPoolCreate(&pools[b.device], &p));
	MUST(cudaMallocFromPoolAsync(&b.p, b.bytes, pools[b.device], streams[b.device]));
	born(b);
}

static void trim(void)
{
	int d = some_device();

	MUST(any(2) ? cudaDeviceSynchronize() : cudaDeviceGraphMemTrim(d));
	if (pools[d])
		MUST(cudaMemPoolTrimTo(pools[d], any(64) * MIB));
}

/* ---- physical memory and addresses ---- */

static void physical(void)
{
	CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				  .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	struct block b = { .kind = PHYSICAL, .device = some_device(), .handles = 1 };

	p.location.id = b.device;
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	b.bytes = PAGE * (1 + any(16));
	MUST(cuMemAddressReserve((CUdeviceptr *)&b.p, b.bytes, 0, 0, 0));
	MUST(cuMemCreate(&b.handle[0], b.bytes, &p, 0));
	born(b);
}

static void settle(size_t i)
{
	struct block *b = &live[i];

	if (b->mapped || b->handles)
		return;
	MUST(cuMemAddressFree((CUdeviceptr)b->p, b->bytes));
	died(i);
}

static void map_or_unmap(struct block *b)
{
	if (b->mapped)
		MUST(cuMemUnmap((CUdeviceptr)b->p, b->bytes));
	else if (b->handles)
		MUST(cuMemMap((CUdeviceptr)b->p, b->bytes, 0, b->handle[b->handles - 1], 0));
	b->mapped = !b->mapped && b->handles;
}

/* A second handle: of the mapping, or of a descriptor that was exported. */
static void take_handle(struct block *b)
{
	union {
		void *p;
		int fd;
	} shared = { 0 };

	if (b->handles != 1)
		return;
	if (!has("share") && b->mapped) {
		MUST(cuMemRetainAllocationHandle(&b->handle[1], b->p));
	} else if (has("share")) {
		MUST(cuMemExportToShareableHandle(&shared.fd, b->handle[0],
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		MUST(cuMemImportFromShareableHandle(&b->handle[1], shared.p,
						    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		close(shared.fd);
	} else {
		return;
	}
	b->handles = 2;
	if (!any(2)) { /* the other goes first */
		CUmemGenericAllocationHandle h = b->handle[0];

		b->handle[0] = b->handle[1];
		b->handle[1] = h;
	}
}

static void move_physical(void)
{
	long i = some_block(PHYSICAL);
	struct block *b = &live[i];

	if (i < 0)
		return;
	switch (any(4)) {
	case 0:
		take_handle(b);
		return;
	case 1:
		if (b->handles)
			MUST(cuMemRelease(b->handle[--b->handles]));
		break;
	default:
		map_or_unmap(b);
	}
	settle((size_t)i);
}

static void end_physical(size_t i)
{
	struct block *b = &live[i];

	while (b->handles)
		MUST(cuMemRelease(b->handle[--b->handles]));
	if (b->mapped)
		map_or_unmap(b);
	settle(i);
}

/* ---- frees ---- */

static void end_block(size_t i)
{
	struct block *b = &live[i];

	if (b->kind == PHYSICAL) {
		end_physical(i);
		return;
	}
	MUST(cudaSetDevice(b->device));
	if (b->kind == PINNED)
		MUST(cudaFreeHost(b->p));
	else if (b->kind == REGISTERED)
		MUST(cudaHostUnregister(b->p));
	else if (b->kind == ARRAY)
		MUST(cudaFreeArray(b->p));
	else if ((b->kind == ASYNC || b->kind == POOLED || b->kind == GRAPH) && any(4))
		MUST(cudaFreeAsync(b->p, streams[b->device]));
	else
		MUST(any(2) ? (int)cudaFree(b->p) : (int)cuMemFree((CUdeviceptr)b->p));
	died(i);
}

/* The more there are the more go, so that some 60 stay. */
static void end_some(void)
{
	size_t n = lives > BLOCKS / 2 ? BLOCKS / 4 : any(120) < lives;

	while (n-- && lives)
		end_block(any(lives));
}
