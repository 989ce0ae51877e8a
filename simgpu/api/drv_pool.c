/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered allocation: the driver's and the runtime's functions for pools (pools.c).
 */
#include <string.h>
#include "../core/clock.h"
#include "../core/stream.h"
#include "traced.h"

#define POOL(p) ((struct sim_pool *)(p))

static int check_device(int device)
{
	return device >= 0 && device < sim_device_count() ? SIM_OK : SIM_BAD_DEVICE;
}

static int create_pool(void **pool, int type, int id, size_t most)
{
	/* Only memory of a device is counted here; a host pool counts as the current device's. */
	int device = type == CU_MEM_LOCATION_TYPE_DEVICE ? id : sim_device();
	int result = sim_init();

	if (!result)
		result = pool ? check_device(device) : SIM_INVALID;
	return result ? result : pool_create((struct sim_pool **)pool, device, most);
}

static int get_pool(void **pool, int device, bool builtin)
{
	int result = pool ? check_device(device) : SIM_INVALID;

	if (!result)
		*pool = builtin ? pool_default(device) : pool_current(device);
	return result;
}

static int set_pool(void *pool, int device)
{
	int result = check_device(device);

	return result ? result : pool_set_current(device, POOL(pool));
}

static int destroy(void *pool)
{
	return pool_destroy(POOL(pool));
}

static int trim(void *pool, size_t keep)
{
	return pool_check(pool) ? pool_trim(POOL(pool), keep) : SIM_INVALID;
}

static int get(void *pool, int attribute, void *value)
{
	return pool_check(pool) ? pool_get(POOL(pool), attribute, value) : SIM_INVALID;
}

static int set(void *pool, int attribute, void *value)
{
	return pool_check(pool) ? pool_set(POOL(pool), attribute, value) : SIM_INVALID;
}

static int get_access(int *flags, void *pool)
{
	if (!pool_check(pool))
		return SIM_INVALID;
	*flags = 3;
	return SIM_OK;
}

/* ---- driver ---- */

DRV_TRACED_PLAIN(cuMemPoolCreate, (pool, p),
		 p ? create_pool((void **)pool, p->location.type, p->location.id, p->maxSize)
		   : SIM_INVALID,
		 CUmemoryPool *pool, const CUmemPoolProps *p)
DRV_TRACED_PLAIN(cuMemPoolDestroy, (pool), destroy(pool), CUmemoryPool pool)
DRV_TRACED_PLAIN(cuMemPoolTrimTo, (pool, keep), trim(pool, keep), CUmemoryPool pool, size_t keep)
DRV_PLAIN(cuMemPoolGetAttribute, get(pool, attribute, value), CUmemoryPool pool,
	  CUmemPool_attribute attribute, void *value)
DRV_PLAIN(cuMemPoolSetAttribute, set(pool, attribute, value), CUmemoryPool pool,
	  CUmemPool_attribute attribute, void *value)

SIM_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t n)
{
	(void)map, (void)n;
	return pool_check(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRV_PLAIN(cuMemPoolGetAccess, get_access((int *)flags, pool), CUmemAccess_flags *flags,
	  CUmemoryPool pool, UNUSED CUmemLocation *location)
DRV_PLAIN(cuDeviceGetDefaultMemPool, get_pool((void **)pool, device, true), CUmemoryPool *pool,
	  CUdevice device)
DRV_PLAIN(cuDeviceGetMemPool, get_pool((void **)pool, device, false), CUmemoryPool *pool,
	  CUdevice device)
DRV_PLAIN(cuDeviceSetMemPool, set_pool(pool, device), CUdevice device, CUmemoryPool pool)

SIM_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
					CUmemAllocationType type)
{
	(void)type;
	return location ? DRV(get_pool((void **)pool, location->id, true))
			: CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
				 CUmemAllocationType type)
{
	(void)type;
	return location ? DRV(get_pool((void **)pool, location->id, false))
			: CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
				 CUmemoryPool pool)
{
	(void)type;
	return location ? DRV(set_pool(pool, location->id)) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- on a recording stream: nodes, whose graphs allocate and free when they run ---- */

static bool recording(void *stream)
{
	struct sim_stream *s = stream_find(stream);

	return s && s->capture;
}

static int capture_of(void *stream, struct capture *c)
{
	int status = 0, result = capture_info(stream, &status, c);

	return result ? result : status == 1 ? SIM_OK : ERR_CAPTURE_INVALIDATED;
}

static int record_alloc(void *stream, int device, uintptr_t *addr, size_t bytes)
{
	struct node_spec spec;
	struct capture c;
	int result = capture_of(stream, &c);

	if (!result)
		result = graph_allocates(c.graph, device, bytes, &spec);
	if (result)
		return result;
	stream_captures(stream, &spec);
	*addr = spec.addr;
	return SIM_OK;
}

static int record_free(void *stream, uintptr_t addr)
{
	struct node_spec spec;
	struct capture c;
	int result = capture_of(stream, &c);

	if (!result)
		result = graph_frees(c.graph, addr, &spec);
	if (!result)
		stream_captures(stream, &spec);
	return result;
}

static int alloc_async(CUdeviceptr *ptr, size_t bytes, struct sim_pool *pool, void *stream)
{
	uintptr_t addr = 0;
	int result = stream_valid(stream);

	if (result || !ptr || !bytes || !pool_check(pool))
		return result ? result : SIM_INVALID;
	result = capture_legacy(stream);
	if (!result)
		result = recording(stream) ? record_alloc(stream, pool_device(pool), &addr, bytes)
					   : pool_alloc(pool, &addr, bytes);
	if (result)
		return result;
	clock_spend(pool_device(pool), COST_LAUNCH);
	*ptr = addr;
	return SIM_OK;
}

static int free_async(CUdeviceptr ptr, void *stream)
{
	int result = stream_valid(stream);

	if (result)
		return result;
	clock_spend(sim_device(), COST_LAUNCH);
	return recording(stream) ? record_free(stream, ptr) : memory_free(ptr);
}

DRV_TRACED(cuMemAllocFromPoolAsync, (ptr, bytes, pool, stream),
	   alloc_async(ptr, bytes, POOL(pool), stream), CUdeviceptr *ptr, size_t bytes,
	   CUmemoryPool pool, CUstream stream)

SIM_API CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	int device = 0;

	TRACED_DRV(cuMemAllocAsync, ptr, bytes, stream);
	DRV_ENTER();
	if (stream_device(stream, &device))
		return DRV(SIM_BAD_HANDLE);
	return DRV(alloc_async(ptr, bytes, pool_current(device), stream));
}

DRV_TRACED(cuMemFreeAsync, (ptr, stream), free_async(ptr, stream), CUdeviceptr ptr, CUstream stream)

/* ---- runtime ---- */

RT_TRACED_PLAIN(cudaMemPoolCreate, v11020, (pool, p),
		p ? create_pool((void **)pool, p->location.type, p->location.id, p->maxSize)
		  : SIM_INVALID,
		cudaMemPool_t *pool, const struct cudaMemPoolProps *p)
RT_TRACED_PLAIN(cudaMemPoolDestroy, v11020, (pool), destroy(pool), cudaMemPool_t pool)
RT_TRACED_PLAIN(cudaMemPoolTrimTo, v11020, (pool, keep), trim(pool, keep), cudaMemPool_t pool,
		size_t keep)
RT_PLAIN(cudaMemPoolGetAttribute, get(pool, attribute, value), cudaMemPool_t pool,
	 enum cudaMemPoolAttr attribute, void *value)
RT_PLAIN(cudaMemPoolSetAttribute, set(pool, attribute, value), cudaMemPool_t pool,
	 enum cudaMemPoolAttr attribute, void *value)
RT_PLAIN(cudaMemPoolSetAccess, pool_check(pool) ? SIM_OK : SIM_INVALID, cudaMemPool_t pool,
	 UNUSED const struct cudaMemAccessDesc *map, UNUSED size_t n)
RT_PLAIN(cudaMemPoolGetAccess, get_access((int *)flags, pool), enum cudaMemAccessFlags *flags,
	 cudaMemPool_t pool, UNUSED struct cudaMemLocation *location)

SIM_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	int result = sim_init();

	return RT(result ? result : get_pool((void **)pool, device, true));
}

SIM_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	int result = sim_init();

	return RT(result ? result : get_pool((void **)pool, device, false));
}

SIM_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	int result = sim_init();

	return RT(result ? result : set_pool(pool, device));
}

SIM_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
					     enum cudaMemAllocationType type)
{
	(void)type;
	return location ? cudaDeviceGetDefaultMemPool(pool, location->id) : RT(SIM_INVALID);
}

SIM_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
				      enum cudaMemAllocationType type)
{
	(void)type;
	return location ? cudaDeviceGetMemPool(pool, location->id) : RT(SIM_INVALID);
}

SIM_API cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location,
				      enum cudaMemAllocationType type, cudaMemPool_t pool)
{
	(void)type;
	return location ? cudaDeviceSetMemPool(location->id, pool) : RT(SIM_INVALID);
}
