/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs: cuda
 *
 * Random calls of the runtime and the driver, with an account of its own: "own_account SEED CALLS"
 * says on stdout the highest bytes of device memory that it held at once, in how many blocks, and
 * what it holds at the end. Only results of calls change the account, and some calls are wrong on
 * purpose.
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
#pragma weak cudaMallocManaged
#pragma weak cudaMallocHost
#pragma weak cudaFreeHost
#pragma weak cudaMallocAsync
#pragma weak cudaFreeAsync
#pragma weak cudaMallocArray
#pragma weak cudaFreeArray
#pragma weak cudaDeviceReset
#pragma weak cuInit
#pragma weak cuMemAlloc_v2
#pragma weak cuMemFree_v2
#pragma weak cuMemCreate
#pragma weak cuMemAddressReserve
#pragma weak cuMemAddressFree
#pragma weak cuMemMap
#pragma weak cuMemUnmap
#pragma weak cuMemRelease
#pragma weak cuMemRetainAllocationHandle
CUresult cuCtxCreate_v2(CUcontext *made, unsigned flags, CUdevice device); /* not in 13's header */
#pragma weak cuCtxCreate_v2
#pragma weak cuCtxDestroy_v2
#pragma weak cuCtxPopCurrent_v2

#define MOST	 96
#define UNIT	 (2ull << 20)
#define CONTEXTS 6

enum kind { LINEAR, PITCHED, MANAGED, HOST, ASYNC, ARRAY, MAPPED };

static struct item {
	enum kind kind;
	uint64_t addr, size; /* size: of the device */
	CUcontext context;
} items[MOST];

static int count, made; /* made: contexts */
static CUcontext context;
static uint64_t now, peak, state;
static int blocks, peak_blocks;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %d\n", what, rc);
	exit(1);
}

#define MUST(...) must(__VA_ARGS__, #__VA_ARGS__)

static void comes(enum kind kind, uint64_t addr, uint64_t size)
{
	items[count++] = (struct item){ kind, addr, size, context };
	now += size;
	blocks += size != 0;
	if (now > peak) {
		peak = now;
		peak_blocks = blocks;
	}
}

static void goes(int i)
{
	now -= items[i].size;
	blocks -= items[i].size != 0;
	items[i] = items[--count];
}

static void map_some(void)
{
	CUmemAllocationProp props = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	uint64_t size = (1 + draw(4)) * UNIT;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	MUST(cuMemCreate(&handle, size, &props, 0));
	MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
	MUST(cuMemMap(at, size, 0, handle, 0));
	MUST(cuMemRelease(handle));
	comes(MAPPED, at, size);
}

static void unmap(const struct item *it)
{
	CUmemGenericAllocationHandle handle;

	if (draw(2)) { /* held by a handle a moment longer */
		MUST(cuMemRetainAllocationHandle(&handle, (void *)it->addr));
		MUST(cuMemUnmap(it->addr, it->size));
		MUST(cuMemRelease(handle));
	} else {
		MUST(cuMemUnmap(it->addr, it->size));
	}
	MUST(cuMemAddressFree(it->addr, it->size));
}

static void make_other(void)
{
	static const struct cudaChannelFormatDesc bytes = { 8, 0, 0, 0, 0 };
	cudaArray_t array;
	size_t pitch;
	void *p;

	switch (draw(6)) {
	case 0:
		MUST(cudaMallocPitch(&p, &pitch, 1000, 100));
		comes(PITCHED, (uint64_t)p, pitch * 100);
		break;
	case 1:
		MUST(cudaMallocManaged(&p, 64 << 20, cudaMemAttachGlobal));
		comes(MANAGED, (uint64_t)p, 0);
		break;
	case 2:
		MUST(cudaMallocHost(&p, 1 << 20));
		comes(HOST, (uint64_t)p, 0);
		break;
	case 3:
		MUST(cudaMallocAsync(&p, 100000, NULL));
		comes(ASYNC, (uint64_t)p, 100000);
		break;
	case 4:
		MUST(cudaMallocArray(&array, &bytes, 1000, 10, 0));
		comes(ARRAY, (uint64_t)array, 10000);
		break;
	default:
		map_some();
	}
}

static void make(void)
{
	uint64_t size = 1000 + draw(40000);
	CUdeviceptr d;
	void *p;

	if (!context && !draw(8)) {
		make_other();
	} else if (context || draw(2)) {
		MUST(cuMemAlloc_v2(&d, size));
		comes(LINEAR, d, size);
	} else {
		MUST(cudaMalloc(&p, size));
		comes(LINEAR, (uint64_t)p, size);
	}
}

static void take(int i)
{
	const struct item *it = &items[i];
	void *p = (void *)it->addr;

	if (it->kind == HOST)
		MUST(cudaFreeHost(p));
	else if (it->kind == ASYNC)
		MUST(cudaFreeAsync(p, NULL));
	else if (it->kind == ARRAY)
		MUST(cudaFreeArray(p));
	else if (it->kind == MAPPED)
		unmap(it);
	else if (draw(2))
		MUST(cuMemFree_v2(it->addr));
	else
		MUST(cudaFree(p));
	goes(i);
}

/* Each of these is refused. */
static void be_wrong(void)
{
	const struct item *it = &items[draw((uint64_t)count)];
	void *p = (void *)it->addr;
	int rc = 0;

	if (it->kind == HOST)
		rc = cudaFree(p);
	else if (it->kind == MAPPED)
		rc = draw(2) ? cuMemUnmap(it->addr, it->size / 2)
			     : cuMemAddressFree(it->addr, it->size);
	else if (it->kind == LINEAR)
		rc = draw(2) ? cudaFreeHost(p) : cuMemFree_v2(it->addr + 256);
	else
		return;
	if (!rc) {
		fprintf(stderr, "a wrong free of kind %d was not refused\n", (int)it->kind);
		exit(1);
	}
}

/* All of the context's own goes; what is no context's is freed before. */
static void end_of(CUcontext ended)
{
	for (int i = count; i--;) {
		if (items[i].context != ended)
			continue;
		if (items[i].kind == LINEAR || items[i].kind == PITCHED || items[i].kind == ARRAY)
			goes(i);
	}
}

static void reset(void)
{
	for (int i = count; i--;)
		if (items[i].kind == ASYNC || items[i].kind == MAPPED || items[i].kind == HOST ||
		    items[i].kind == MANAGED)
			take(i);
	MUST(cudaDeviceReset());
	end_of(NULL);
}

/* A context of the program's own, for a while; it ends while it is current, or after another one is
 * current again. */
static void change_context(void)
{
	CUcontext old = context, popped;

	if (!context && made < CONTEXTS) {
		MUST(cuCtxCreate_v2(&context, 0, 0));
		made++;
	} else if (context) {
		if (made % 2)
			MUST(cuCtxPopCurrent_v2(&popped));
		MUST(cuCtxDestroy_v2(context));
		context = NULL;
		end_of(old);
	}
}

int main(int argc, char **argv)
{
	int calls = argc > 2 ? atoi(argv[2]) : 1000;

	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	MUST(cuInit(0));
	MUST(cudaFree(NULL));
	for (int i = 0; i < calls; i++) {
		/* most is held somewhere in the middle */
		int most = i > calls / 5 * 3 && i < calls / 5 * 3 + 3000 ? MOST : MOST / 2;

		if (!draw(2000))
			change_context();
		else if (!context && !draw(5000))
			reset();
		else if (count && !draw(20))
			be_wrong();
		else if (count < most / 2 || (count < most && draw(2)))
			make();
		else
			take((int)draw((uint64_t)count));
	}
	printf("peak %llu %d\n", (unsigned long long)peak, peak_blocks);
	for (int i = 0; i < count; i++)
		if (items[i].size && items[i].kind != MAPPED)
			printf("left %#llx %llu\n", (unsigned long long)items[i].addr,
			       (unsigned long long)items[i].size);
	printf("end %llu\n", (unsigned long long)now);
	return 0;
}
