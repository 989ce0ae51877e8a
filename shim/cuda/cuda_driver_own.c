/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver hooks that no row of hooks.def can describe: physical memory lies where its properties
 * say, and a primary context ends with its last reference. Application threads, any lock held.
 */
#include "hook_body.h"
#include "../../format/record.h"

int cuMemCreate(uint64_t *handle, size_t n, const struct cuda_phys_props *props,
		unsigned long long flags)
{
	DRIVER_CALL(cuMemCreate);

	if (!real)
		return rc;
	call_begin(&call);
	rc = real(handle, n, props, flags);
	event.size = n;
	event.arg0 = GMT_MEM_PHYSICAL;
	if (props) {
		event.device = location_device(&props->location);
		event.arg0 = event.device >= 0 ? GMT_MEM_PHYSICAL : GMT_MEM_HOST;
	}
	if (rc) {
		event.kind = GMT_MEM_FAIL;
		event.arg1 = (uint64_t)rc;
	} else {
		event.kind = GMT_PHYS_CREATE;
		event.addr = *handle;
	}
	call_end(&call, &event);
	return rc;
}

/* The end of a context. `own`: the program made it while we recorded. Another one, if it is
 * current, ends everything of its device outside such contexts. */
static struct gmt_event context_ends(const void *context, bool own)
{
	typeof(&cuCtxGetCurrent) ask = own ? NULL : MAYBE_DRIVER(cuCtxGetCurrent);
	void *current = NULL;
	bool is_current = ask && !ask(&current) && current == context;

	return (struct gmt_event){ .kind = GMT_CTX_DESTROY,
				   .addr = (uint64_t)context,
				   .device = is_current ? DEVICE_CURRENT : -1 };
}

/* Drops the context first: a new one might get its address during the call. */
#define CONTEXT_DESTROY(symbol)                              \
	int symbol(void *context)                            \
	{                                                    \
		bool own = contexts_drop((uint64_t)context); \
                                                             \
		DRIVER_CALL(symbol);                         \
                                                             \
		if (!real)                                   \
			return rc;                           \
		call_begin(&call);                           \
		event = context_ends(context, own);          \
		call_before(&call, &event);                  \
		rc = real(context);                          \
		if (rc && own)                               \
			contexts_note((uint64_t)context);    \
		call_result(&event, rc);                     \
		call_end(&call, &event);                     \
		return rc;                                   \
	}

CONTEXT_DESTROY(cuCtxDestroy_v2)
CONTEXT_DESTROY(cuCtxDestroy)

static bool is_active(int device)
{
	typeof(&cuDevicePrimaryCtxGetState) ask = MAYBE_DRIVER(cuDevicePrimaryCtxGetState);
	unsigned flags;
	int active = 1;

	return !ask || ask(device, &flags, &active) || active;
}

#define PRIMARY_RELEASE(symbol)                                                                  \
	int symbol(int device)                                                                   \
	{                                                                                        \
		DRIVER_CALL(symbol);                                                             \
                                                                                                 \
		if (!real)                                                                       \
			return rc;                                                               \
		call_begin(&call);                                                               \
		rc = real(device);                                                               \
		if (!rc && !is_active(device))                                                   \
			event = (struct gmt_event){ .kind = GMT_CTX_DESTROY, .device = device }; \
		call_end(&call, &event);                                                         \
		return rc;                                                                       \
	}

PRIMARY_RELEASE(cuDevicePrimaryCtxRelease_v2)
PRIMARY_RELEASE(cuDevicePrimaryCtxRelease)

#define PRIMARY_RESET(symbol)                                                            \
	int symbol(int device)                                                           \
	{                                                                                \
		DRIVER_CALL(symbol);                                                     \
                                                                                         \
		if (!real)                                                               \
			return rc;                                                       \
		call_begin(&call);                                                       \
		event = (struct gmt_event){ .kind = GMT_CTX_DESTROY, .device = device }; \
		call_before(&call, &event);                                              \
		rc = real(device);                                                       \
		call_result(&event, rc);                                                 \
		call_end(&call, &event);                                                 \
		return rc;                                                               \
	}

PRIMARY_RESET(cuDevicePrimaryCtxReset_v2)
PRIMARY_RESET(cuDevicePrimaryCtxReset)
