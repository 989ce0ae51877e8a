/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory that a CUDA call gave takes room. */
#include "model_parts.h"

bool model_is_device_memory(uint64_t memory)
{
	return memory == GMT_MEM_DEVICE || memory == GMT_MEM_PITCHED || memory == GMT_MEM_ASYNC ||
	       memory == GMT_MEM_ARRAY || memory == GMT_MEM_PHYSICAL;
}

bool model_is_host_memory(uint64_t memory)
{
	return memory == GMT_MEM_HOST || memory == GMT_MEM_REGISTERED;
}

/* With the framework's cudaMallocAsync backend its calls are its blocks. */
bool model_is_framework_block(const struct gmt_event *e)
{
	return e->arg0 == GMT_MEM_ASYNC && e->flags & GMT_FLAG_FRAMEWORK;
}
