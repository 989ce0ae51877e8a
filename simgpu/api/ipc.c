/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory shared between processes. A handle names process, address, size and device; opening
 * one in another process gives addresses of that size, which are not charged to the device again.
 */
#include <string.h>
#include <unistd.h>
#include "traced.h"

#define MARK 0x73696d697063ull

struct shared {
	uint64_t mark;
	uint64_t base, bytes;
	int32_t pid, device;
};

static int get(void *handle64, uintptr_t ptr)
{
	struct shared s = { .mark = MARK, .pid = getpid() };
	struct block b;
	bool found;

	pthread_mutex_lock(&memory_lock);
	found = block_find(ptr, &b) && ptr < vmm_base();
	pthread_mutex_unlock(&memory_lock);
	if (!found)
		return SIM_INVALID;
	s.base = b.base;
	s.bytes = b.bytes;
	s.device = b.device;
	memset(handle64, 0, CUDA_IPC_HANDLE_SIZE);
	memcpy(handle64, &s, sizeof(s));
	return SIM_OK;
}

static int open_shared(void **ptr, const void *handle64)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
	struct shared s;
	uintptr_t addr = 0;
	size_t bytes;
	void *physical;
	int result;

	memcpy(&s, handle64, sizeof(s));
	if (!ptr || s.mark != MARK || s.device >= sim_device_count())
		return SIM_INVALID;
	if (s.pid == getpid())
		return ERR_INVALID_CONTEXT; /* a process cannot open its own */
	bytes = sim_whole_pages(s.bytes);
	result = vmm_create(&physical, bytes, s.device, true, &prop);
	if (result)
		return result;
	result = vmm_reserve(&addr, bytes, 0, 0);
	if (!result)
		result = vmm_map(addr, bytes, 0, physical);
	vmm_release(physical);
	*ptr = (void *)addr;
	return result;
}

static int close_shared(uintptr_t addr)
{
	struct block b;
	bool found;
	int result;

	pthread_mutex_lock(&memory_lock);
	found = block_find(addr, &b) && b.base == addr && addr >= vmm_base();
	pthread_mutex_unlock(&memory_lock);
	if (!found)
		return SIM_INVALID;
	result = vmm_unmap(addr, b.bytes);
	return result ? result : vmm_unreserve(addr, b.bytes);
}

RT_CALL(cudaIpcGetMemHandle, get(handle, (uintptr_t)ptr), cudaIpcMemHandle_t *handle, void *ptr)
RT_TRACED(cudaIpcOpenMemHandle, v4010, (ptr, handle, flags),
	  cuIpcOpenMemHandle_v2((CUdeviceptr *)ptr, *(CUipcMemHandle *)&handle, flags), void **ptr,
	  cudaIpcMemHandle_t handle, unsigned int flags)
RT_TRACED(cudaIpcCloseMemHandle, v4010, (ptr), cuIpcCloseMemHandle((CUdeviceptr)ptr), void *ptr)
DRV_CALL(cuIpcGetMemHandle, get(handle, ptr), CUipcMemHandle *handle, CUdeviceptr ptr)
DRV_TRACED(cuIpcOpenMemHandle_v2, (ptr, handle, flags), open_shared((void **)ptr, &handle),
	   CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)

DRV_TRACED(cuIpcCloseMemHandle, (ptr), close_shared(ptr), CUdeviceptr ptr)
