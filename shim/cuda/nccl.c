/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives, sends and receives of NCCL. Its kernels name its own buffers, so the uses of the
 * program's tensors are taken from the calls. A NCCL linked into another library is not seen.
 * Application threads, any lock held.
 */
#include "call.h"
#include "use_launches.h"

enum { NCCL_INTERNAL_ERROR = 3 };

/* Bytes of an element, by ncclDataType_t. For later types 1, because the address matters most. */
static size_t element(int type)
{
	static const uint8_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 1;
}

static void *real_of(void **cache, const char *name)
{
	void *real = __atomic_load_n(cache, __ATOMIC_ACQUIRE);

	if (!real) {
		real = resolve_next(name);
		__atomic_store_n(cache, real, __ATOMIC_RELEASE);
	}
	return real;
}

#define NCCL(name, proto, args, sent, received, count, type, stream)                         \
	HOOK_API int name proto;                                                             \
	int name proto                                                                       \
	{                                                                                    \
		static void *cache;                                                          \
		static uint32_t name_id[2];                                                  \
		const struct user user = { #name, name_id, __builtin_frame_address(0) };     \
		typeof(&name) real = (typeof(&name))real_of(&cache, #name);                  \
		int rc = real ? real args : NCCL_INTERNAL_ERROR;                             \
                                                                                             \
		if (!rc && launch_wanted()) {                                                \
			launch_transfer(&user, GMT_TRANSFER_SENT, (uintptr_t)(sent),         \
					(count)*element(type), (uintptr_t)(stream));         \
			launch_transfer(&user, GMT_TRANSFER_RECEIVED, (uintptr_t)(received), \
					(count)*element(type), (uintptr_t)(stream));         \
		}                                                                            \
		return rc;                                                                   \
	}
#include "../hooks.def"
