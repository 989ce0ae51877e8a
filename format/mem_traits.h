/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that counts on a device, and the calls that end it: one definition for the totals of a
 * bounded recording (shim/recording/device_memory.c) and for every reader. Any thread; no state.
 */
#pragma once

#include "record.h"

enum gmt_mem_trait {
	GMT_MEM_ON_DEVICE = 1 << 0,  /* its bytes are the device's: they count */
	GMT_MEM_ON_HOST = 1 << 1,    /* the end of a context does not end it */
	GMT_MEM_OF_CONTEXT = 1 << 2, /* it ends with the context that it was allocated in; without
				      * this bit with the device's primary one */
};

/* Managed memory is where it was used last: nobody says when. */
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

/* With the framework's cudaMallocAsync backend its calls are its blocks: totals are those of the
 * blocks, and the end of a context does not end them. */
static inline bool gmt_is_framework_block(const struct gmt_event *alloc)
{
	return alloc->arg0 == GMT_MEM_ASYNC && alloc->flags & GMT_FLAG_FRAMEWORK;
}

/* The context that memory of that kind ends with, allocated by a thread whose latest CTX_CURRENT
 * said `current`; 0 = the device's primary one. */
static inline uint64_t gmt_mem_context(uint64_t mem, uint64_t current)
{
	return gmt_mem_traits(mem) & GMT_MEM_OF_CONTEXT ? current : 0;
}

/* Whether a CTX_DESTROY ends memory of a device and a context: with a device it is the device's
 * primary context that ends, else the one in addr. */
static inline bool gmt_mem_ends(const struct gmt_event *end, uint64_t mem, int32_t device,
				uint64_t context)
{
	if (gmt_mem_is_on_host(mem))
		return false;
	if (end->device >= 0)
		return device == end->device && !context;
	return context && context == end->addr;
}
