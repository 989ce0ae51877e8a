/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions that allocate and free memory, and its queries about memory.
 */
#include "../core/clock.h"
#include "traced.h"

static int alloc(CUdeviceptr *ptr, size_t bytes)
{
	uintptr_t addr = 0;
	int result = ptr ? capture_forbids() : SIM_INVALID;

	if (!result)
		result = memory_alloc(sim_device(), &addr, bytes);
	clock_spend(sim_device(), COST_ALLOC);
	if (!result)
		*ptr = addr;
	return result;
}

DRV_TRACED(cuMemAlloc_v2, (ptr, bytes), alloc(ptr, bytes), CUdeviceptr *ptr, size_t bytes)

SIM_API CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
				    unsigned int element)
{
	TRACED_DRV(cuMemAllocPitch_v2, ptr, pitch, width, height, element);
	DRV_ENTER();
	if (!pitch || (element != 4 && element != 8 && element != 16))
		return DRV(SIM_INVALID);
	*pitch = (width + 511) & ~(size_t)511;
	return DRV(alloc(ptr, *pitch * height));
}

/* Freed memory may still be in use, so the free waits for the device. */
static void wait_for_users(const void *ptr)
{
	int device = sim_ptr_device(ptr);

	clock_wait_all(device < 0 ? sim_device() : device);
	clock_spend(sim_device(), COST_FREE);
}

static int release(void *ptr)
{
	struct host_range r;
	int result = capture_forbids();

	if (result || !ptr)
		return result;
	wait_for_users(ptr);
	if (host_find(ptr, &r) && r.kind == HOST_MANAGED)
		return host_free(ptr, HOST_MANAGED);
	return memory_free((uintptr_t)ptr);
}

DRV_TRACED(cuMemFree_v2, (ptr), release((void *)ptr), CUdeviceptr ptr)
DRV_TRACED(cuMemAllocManaged, (ptr, bytes, flags),
	   host_alloc((void **)ptr, bytes, flags, HOST_MANAGED), CUdeviceptr *ptr, size_t bytes,
	   unsigned int flags)

SIM_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	DRV_ENTER();
	sim_mem_info(sim_device(), free_bytes, total);
	return CUDA_SUCCESS;
}

/* ---- host memory ---- */

SIM_API CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	TRACED_DRV(cuMemHostAlloc, ptr, bytes, flags);
	DRV_ENTER();
	clock_spend(sim_device(), COST_ALLOC_HOST);
	return DRV(flags & ~7u ? SIM_INVALID : host_alloc(ptr, bytes, flags, HOST_PINNED));
}

DRV_TRACED(cuMemAllocHost_v2, (ptr, bytes), host_alloc(ptr, bytes, 0, HOST_PINNED), void **ptr,
	   size_t bytes)

SIM_API CUresult cuMemFreeHost(void *ptr)
{
	TRACED_DRV(cuMemFreeHost, ptr);
	DRV_ENTER();
	wait_for_users(ptr);
	return DRV(host_free(ptr, HOST_PINNED));
}

DRV_TRACED(cuMemHostRegister_v2, (ptr, bytes, flags), host_register(ptr, bytes, flags), void *ptr,
	   size_t bytes, unsigned int flags)
DRV_TRACED(cuMemHostUnregister, (ptr), host_unregister(ptr), void *ptr)

SIM_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
	struct host_range r;

	DRV_ENTER();
	if (!device || flags || !host_find(host, &r))
		return DRV(SIM_INVALID);
	*device = (CUdeviceptr)host;
	return DRV(SIM_OK);
}

SIM_API CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct host_range r;

	DRV_ENTER();
	if (!flags || !host_find(host, &r) || r.kind != HOST_PINNED)
		return DRV(SIM_INVALID);
	*flags = r.flags;
	return DRV(SIM_OK);
}

/* ---- queries about addresses ---- */

static bool find_block(uintptr_t addr, struct block *out)
{
	struct host_range r;
	bool found;

	pthread_mutex_lock(&memory_lock);
	found = block_find(addr, out);
	pthread_mutex_unlock(&memory_lock);
	if (!found && host_find((void *)addr, &r)) {
		*out = (struct block){ r.base, r.bytes, r.device, r.owner, NULL };
		found = true;
	}
	return found;
}

SIM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	struct block b;

	DRV_ENTER();
	if (!find_block(ptr, &b))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = b.base;
	if (bytes)
		*bytes = b.bytes;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct host_range r = { 0 };
	struct block b;
	bool host = host_find((void *)ptr, &r);

	if (!data || !find_block(ptr, &b))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(void **)data = ctx_of(b.owner, b.device);
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(int *)data =
			host && r.kind != HOST_MANAGED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = ptr;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)data = b.base >> 9;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = host && r.kind == HOST_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = b.device;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(int *)data = !host && ptr < vmm_base();
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = b.base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = b.bytes;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = b.arena ? b.arena->pool : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(int *)data = 3;
		break;
	default: /* flags and handles that do not exist here */
		*(int *)data = 0;
	}
	return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes,
					void **data, CUdeviceptr ptr)
{
	/* Unlike cuPointerGetAttribute, this never fails for an unknown address. */
	for (unsigned int i = 0; i < n; i++)
		if (cuPointerGetAttribute(data[i], attributes[i], ptr))
			*(int *)data[i] = 0;
	return CUDA_SUCCESS;
}
