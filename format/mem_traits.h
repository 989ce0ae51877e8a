/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory counts as a device's, and which calls free it: one definition for the totals of a
 * bounded recording (shim/recording/device_memory.c) and for every reader. Any thread; no state.
 */
#pragma once

#include "record.h"

enum gmt_mem_trait {
	GMT_MEM_ON_DEVICE = 1 << 0,  /* its bytes count as device memory */
	GMT_MEM_ON_HOST = 1 << 1,    /* outlives its context */
	GMT_MEM_OF_CONTEXT = 1 << 2, /* freed with the context that it was allocated in; without
					this bit, with the device's primary context */
};

/* Managed memory does not count: it lies where it was last used, which no event reports. */
static inline unsigned gmt_mem_traits(uint64_t mem)
{
	static const uint8_t traits[] = {
		[GMT_MEM_DEVICE] = GMT_MEM_ON_DEVICE | GMT_MEM_OF_CONTEXT,
		[GMT_MEM_PITCHED] = GMT_MEM_ON_DEVICE | GMT_MEM_OF_CONTEXT,
		[GMT_MEM_MANAGED] = GMT_MEM_OF_CONTEXT,
		[GMT_MEM_HOST] = GMT_MEM_ON_HOST,
		[GMT_MEM_REGISTERED] = GMT_MEM_ON_HOST,
		[GMT_MEM_ASYNC] = GMT_MEM_ON_DEVICE,
		[GMT_MEM_ARRAY] = GMT_MEM_ON_DEVICE | GMT_MEM_OF_CONTEXT,
		[GMT_MEM_PHYSICAL] = GMT_MEM_ON_DEVICE,
		[GMT_MEM_IMPORTED] = GMT_MEM_OF_CONTEXT,
	};

	return mem < sizeof(traits) ? traits[mem] : 0;
}

static inline bool gmt_mem_is_on_device(uint64_t mem)
{
	return gmt_mem_traits(mem) & GMT_MEM_ON_DEVICE;
}

static inline bool gmt_mem_is_on_host(uint64_t mem)
{
	return gmt_mem_traits(mem) & GMT_MEM_ON_HOST;
}

/* A call of the framework's cudaMallocAsync backend, where each call is a block: it counts as one,
 * and it outlives its context. */
static inline bool gmt_is_framework_block(const struct gmt_event *alloc)
{
	return alloc->arg0 == GMT_MEM_ASYNC && alloc->flags & GMT_FLAG_FRAMEWORK;
}

/* The context with which memory of that kind ends. `current` is the latest CTX_CURRENT of the
 * allocating thread; 0 = the device's primary context. */
static inline uint64_t gmt_mem_context(uint64_t mem, uint64_t current)
{
	return gmt_mem_traits(mem) & GMT_MEM_OF_CONTEXT ? current : 0;
}

/* Whether the CTX_DESTROY event `end` frees memory of that kind, device and context. If `end` has a
 * device, the device's primary context ends, else the context in addr. */
static inline bool gmt_mem_ends(const struct gmt_event *end, uint64_t mem, int32_t device,
				uint64_t context)
{
	if (gmt_mem_is_on_host(mem))
		return false;
	if (end->device >= 0)
		return device == end->device && !context;
	return context && context == end->addr;
}
