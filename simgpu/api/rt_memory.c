/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's functions that allocate and free memory, and its queries about memory. They call
 * the driver's functions directly, so a hook between programs and the driver does not see these
 * calls.
 */
#include <string.h>
#include "../core/usage.h"
#include "traced.h"

/* 0 bytes succeed with NULL. */
static int alloc(void **ptr, size_t bytes)
{
	CUdeviceptr addr = 0;
	int result = ptr ? SIM_OK : SIM_INVALID;

	if (!result && bytes)
		result = cuMemAlloc_v2(&addr, bytes);
	if (!result)
		*ptr = (void *)addr;
	return result;
}

RT_TRACED(cudaMalloc, v3020, (ptr, bytes), alloc(ptr, bytes), void **ptr, size_t bytes)
RT_TRACED(cudaFree, v3020, (ptr), ptr ? (int)cuMemFree_v2((CUdeviceptr)ptr) : SIM_OK, void *ptr)
RT_TRACED(cudaMallocPitch, v3020, (ptr, pitch, width, height),
	  cuMemAllocPitch_v2((CUdeviceptr *)ptr, pitch, width, height, 4), void **ptr,
	  size_t *pitch, size_t width, size_t height)

SIM_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	TRACED_RT(cudaMalloc3D_v3020, ptr, extent);
	RT_ENTER();
	if (!ptr)
		return RT(SIM_INVALID);
	ptr->xsize = extent.width;
	ptr->ysize = extent.height;
	return RT(cuMemAllocPitch_v2((CUdeviceptr *)&ptr->ptr, &ptr->pitch, extent.width,
				     extent.height * extent.depth, 4));
}

SIM_API cudaError_t cudaMallocManaged(void **ptr, size_t bytes, unsigned int flags)
{
	TRACED_RT(cudaMallocManaged_v6000, ptr, bytes, flags);
	RT_ENTER();
	if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
		return RT(SIM_INVALID);
	return RT(cuMemAllocManaged((CUdeviceptr *)ptr, bytes, flags));
}

/* Before CUDA 13 the location is a device, -1 for the host. */
SIM_API cudaError_t cudaMemAdvise(const void *ptr, UNUSED size_t bytes,
				  enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	int where = (int)location.type;
	bool on_host = where < 0 || (where > cudaMemLocationTypeDevice && sim_cuda_major() >= 13);

	RT_ENTER();
	if (advice == cudaMemAdviseSetPreferredLocation && on_host)
		host_prefer(ptr);
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	size_t f, t;

	RT_ENTER();
	usage_asked();
	sim_mem_info(sim_device(), &f, &t);
	if (free_bytes)
		*free_bytes = f;
	if (total)
		*total = t;
	return RT(SIM_OK);
}

/* ---- host memory ---- */

RT_TRACED(cudaHostAlloc, v3020, (ptr, bytes, flags), cuMemHostAlloc(ptr, bytes, flags), void **ptr,
	  size_t bytes, unsigned int flags)
RT_TRACED(cudaMallocHost, v3020, (ptr, bytes), cuMemHostAlloc(ptr, bytes, 0), void **ptr,
	  size_t bytes)
RT_TRACED(cudaFreeHost, v3020, (ptr), ptr ? (int)cuMemFreeHost(ptr) : SIM_OK, void *ptr)
RT_TRACED(cudaHostRegister, v4000, (ptr, bytes, flags), cuMemHostRegister_v2(ptr, bytes, flags),
	  void *ptr, size_t bytes, unsigned int flags)
RT_TRACED(cudaHostUnregister, v4000, (ptr), cuMemHostUnregister(ptr), void *ptr)
RT_CALL(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, host, flags),
	void **device, void *host, unsigned int flags)
RT_CALL(cudaHostGetFlags, cuMemHostGetFlags(flags, host), unsigned int *flags, void *host)

/* ---- queries about addresses ---- */

/* The structure grew in CUDA 13, so only the common members are written. */
SIM_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *ptr)
{
	struct host_range r;
	int device, result = sim_init();

	if (result || !a)
		return RT(result ? result : SIM_INVALID);
	device = sim_ptr_device(ptr);
	memset(a, 0, sim_cuda_major() >= 13 ? sizeof(*a) : 24);
	a->device = cudaInvalidDeviceId;
	if (device >= 0) {
		a->type = cudaMemoryTypeDevice;
		a->device = device;
		a->devicePointer = (void *)ptr;
	} else if (host_find(ptr, &r)) {
		a->type = r.kind == HOST_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
		a->device = r.device;
		a->devicePointer = a->hostPointer = (void *)ptr;
	} else {
		a->hostPointer = (void *)ptr;
		a->device = -2;
	}
	return RT(SIM_OK);
}

/* ---- stream-ordered ---- */

SIM_API cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream)
{
	TRACED_RT(cudaMallocAsync_v11020, ptr, bytes, stream);
	RT_ENTER();
	if (!ptr || bytes)
		return RT(cuMemAllocAsync((CUdeviceptr *)ptr, bytes, stream));
	*ptr = NULL;
	return RT(stream_valid(stream));
}

SIM_API cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool,
					    cudaStream_t stream)
{
	TRACED_RT(cudaMallocFromPoolAsync_v11020, ptr, bytes, pool, stream);
	RT_ENTER();
	if (!ptr || bytes)
		return RT(cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, bytes, pool, stream));
	*ptr = NULL;
	return RT(stream_valid(stream));
}

RT_TRACED(cudaFreeAsync, v11020, (ptr, stream),
	  ptr ? (int)cuMemFreeAsync((CUdeviceptr)ptr, stream) : stream_valid(stream), void *ptr,
	  cudaStream_t stream)
