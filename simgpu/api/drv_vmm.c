/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's virtual memory management (vmm.c), in its own types.
 */
#include <string.h>
#include "../core/clock.h"
#include "traced.h"

SIM_API CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
					       CUmemAllocationGranularity_flags option)
{
	(void)option;
	if (!bytes || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = SIM_PAGE;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
			     const CUmemAllocationProp *prop, unsigned long long flags)
{
	TRACED_DRV(cuMemCreate, handle, bytes, prop, flags);
	_Static_assert(sizeof(*prop) == 32, "what vmm.c keeps of the properties");

	if (!sim_is_init())
		return DRV(SIM_NOT_INITIALIZED);
	if (!prop || flags || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return DRV(SIM_INVALID);
	clock_spend(sim_device(), COST_ALLOC); /* includes the map and the access that follow */
	return DRV(vmm_create((void **)handle, bytes, prop->location.id,
			      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE, prop));
}

SIM_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	TRACED_DRV(cuMemRelease, handle);
	clock_spend(sim_device(), COST_FREE);
	return DRV(vmm_release((void *)handle));
}

DRV_TRACED_PLAIN(cuMemRetainAllocationHandle, (handle, addr),
		 vmm_retain((void **)handle, (uintptr_t)addr), CUmemGenericAllocationHandle *handle,
		 void *addr)

SIM_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							CUmemGenericAllocationHandle handle)
{
	const void *p = vmm_properties((void *)handle);

	if (!p || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(prop, p, sizeof(*prop));
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t align, CUdeviceptr addr,
				     unsigned long long flags)
{
	TRACED_DRV(cuMemAddressReserve, ptr, bytes, align, addr, flags);
	if (!sim_is_init())
		return DRV(SIM_NOT_INITIALIZED);
	return DRV(flags ? SIM_INVALID : vmm_reserve((uintptr_t *)ptr, bytes, align, addr));
}

DRV_TRACED_PLAIN(cuMemAddressFree, (ptr, bytes), vmm_unreserve(ptr, bytes), CUdeviceptr ptr,
		 size_t bytes)
DRV_TRACED_PLAIN(cuMemMap, (ptr, bytes, offset, handle, flags),
		 flags ? SIM_INVALID : vmm_map(ptr, bytes, offset, (void *)handle), CUdeviceptr ptr,
		 size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		 unsigned long long flags)
DRV_TRACED_PLAIN(cuMemUnmap, (ptr, bytes), vmm_unmap(ptr, bytes), CUdeviceptr ptr, size_t bytes)

SIM_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc,
				size_t n)
{
	TRACED_DRV(cuMemSetAccess, ptr, bytes, desc, n);
	int result = desc && n ? SIM_OK : SIM_INVALID;

	for (size_t i = 0; i < n && !result; i++)
		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			result = vmm_set_access(ptr, bytes, desc[i].location.id, desc[i].flags);
	return DRV(result);
}

SIM_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				CUdeviceptr ptr)
{
	int access = 0, result;

	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	result = vmm_get_access(ptr, location->id, &access);
	*flags = access;
	return DRV(result);
}

SIM_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
					      CUmemAllocationHandleType type,
					      unsigned long long flags)
{
	if (flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return type == CU_MEM_HANDLE_TYPE_FABRIC ? CUDA_ERROR_NOT_SUPPORTED
							 : CUDA_ERROR_INVALID_VALUE;
	return DRV(vmm_share(out, (void *)handle));
}

SIM_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os,
						CUmemAllocationHandleType type)
{
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return DRV(vmm_import((void **)handle, (int)(intptr_t)os));
}
