/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of a pool with an allocator of its own (CUDAPluggableAllocator: NCCL's memory, memory
 * that sleeps). The CUDA calls come from another library, but count as the caching allocator's.
 * Application threads, with the lock of the allocator's device held.
 */
#include "../cuda/hook.h"
#include "torch.h"

#define RAW_ALLOC _ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9raw_allocEm

__attribute__((visibility("default"))) void *RAW_ALLOC(void *allocator, size_t bytes);

void *RAW_ALLOC(void *allocator, size_t bytes)
{
	static void *cache;
	void *(*real)(void *, size_t) =
		(void *(*)(void *, size_t))torch_real(&cache, NAME(RAW_ALLOC));
	uintptr_t before = 0;
	void *segment;

	if (resolve_caller((uintptr_t)__builtin_return_address(0)).framework)
		before = call_for_framework((uintptr_t)__builtin_frame_address(0));
	segment = real(allocator, bytes);
	call_for_framework(before);
	return segment;
}
