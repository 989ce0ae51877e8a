/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's initialisation, devices and contexts.
 */
#include <stdio.h>
#include <string.h>
#include "cudart.h"

static int check_device(CUdevice device)
{
	if (!sim_is_init())
		return SIM_NOT_INITIALIZED;
	return device >= 0 && device < sim_device_count() ? SIM_OK : SIM_BAD_DEVICE;
}

/* A function of a device that exists, as one row. */
#define DEVICE_CALL(name, then, ...)               \
	SIM_API CUresult name(__VA_ARGS__)         \
	{                                          \
		int result = check_device(device); \
                                                   \
		if (!result)                       \
			then;                      \
		return DRV(result);                \
	}

SIM_API CUresult cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : DRV(sim_init());
}

SIM_API CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = sim_cuda_version();
	return CUDA_SUCCESS;
}

/* ---- devices ---- */

SIM_API CUresult cuDeviceGetCount(int *count)
{
	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = sim_device_count();
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	int result = check_device(ordinal);

	if (!result)
		*device = ordinal;
	return DRV(result);
}

DEVICE_CALL(cuDeviceGetName, snprintf(name, len, "%s", sim_card()->model), char *name, int len,
	    CUdevice device)
DEVICE_CALL(cuDeviceTotalMem_v2, *bytes = sim_card()->memory, size_t *bytes, CUdevice device)
DEVICE_CALL(cuDeviceGetUuid_v2, device_uuid((unsigned char *)uuid, device_physical(device)),
	    CUuuid *uuid, CUdevice device)
DEVICE_CALL(cuDeviceGetPCIBusId, device_bus_id(id, len, device_physical(device)), char *id, int len,
	    CUdevice device)
DRV_PLAIN(cuDeviceGetByPCIBusId, cudaDeviceGetByPCIBusId(device, id), CUdevice *device,
	  const char *id)

SIM_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	int result = check_device(device);

	*major = sim_card()->major;
	*minor = sim_card()->minor;
	return DRV(result);
}

SIM_API CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type,
						CUdevice device)
{
	(void)type;
	*supported = 0;
	return DRV(check_device(device));
}

/* ---- primary contexts ---- */

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	int result = check_device(device);

	if (!result)
		result = ctx_activate(device);
	if (!result) {
		ctx_primary(device)->refs++;
		*out = (CUcontext)ctx_primary(device);
	}
	return DRV(result);
}

SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	struct sim_ctx *ctx;
	int result = check_device(device);

	if (result)
		return DRV(result);
	ctx = ctx_primary(device);
	if (!ctx->active)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Only retained references are counted, not the runtime's own. */
	if (ctx->refs && !--ctx->refs && !ctx->runtime)
		memory_reset(device);
	return CUDA_SUCCESS;
}

DEVICE_CALL(cuDevicePrimaryCtxReset_v2, memory_reset(device), CUdevice device)
SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	int result = check_device(device);

	if (!result) {
		*flags = ctx_primary(device)->flags;
		*active = ctx_primary(device)->active;
	}
	return DRV(result);
}

DEVICE_CALL(cuDevicePrimaryCtxSetFlags_v2, ctx_primary(device)->flags = flags, CUdevice device,
	    unsigned int flags)

/* ---- contexts that the program makes ---- */

static int create_context(CUcontext *out, unsigned int flags, CUdevice device)
{
	struct sim_ctx *ctx;
	int result = check_device(device);

	if (result)
		return result;
	ctx = ctx_create(device, flags);
	if (!ctx)
		return SIM_NOMEM;
	*out = (CUcontext)ctx;
	return ctx_push(ctx);
}

DRV_PLAIN(cuCtxCreate_v2, create_context(out, flags, device), CUcontext *out, unsigned int flags,
	  CUdevice device)
DRV_PLAIN(cuCtxCreate_v3, create_context(out, flags, device), CUcontext *out,
	  UNUSED CUexecAffinityParam *params, UNUSED int n, unsigned int flags, CUdevice device)
DRV_PLAIN(cuCtxCreate_v4, create_context(out, flags, device), CUcontext *out,
	  UNUSED CUctxCreateParams *params, unsigned int flags, CUdevice device)

SIM_API CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct sim_ctx *ctx = ctx_check(handle);

	if (!ctx || ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_destroy(ctx);
	return CUDA_SUCCESS;
}

/* ---- the current context ---- */

SIM_API CUresult cuCtxGetCurrent(CUcontext *out)
{
	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	*out = (CUcontext)ctx_current();
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct sim_ctx *ctx = handle ? ctx_check(handle) : NULL;

	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (handle && !ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_set(ctx);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	struct sim_ctx *ctx = ctx_check(handle);

	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	return ctx ? DRV(ctx_push(ctx)) : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	return DRV(ctx_pop((struct sim_ctx **)out));
}

SIM_API CUresult cuCtxGetDevice(CUdevice *device)
{
	DRV_ENTER();
	*device = ctx_current()->device;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	struct sim_ctx *ctx = handle ? ctx_check(handle) : ctx_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = ctx->device;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetFlags(unsigned int *flags)
{
	DRV_ENTER();
	*flags = ctx_current()->flags;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct sim_ctx *ctx = handle ? ctx_check(handle) : ctx_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

DRV_ANSWER(cuCtxGetApiVersion, *version = 3020, UNUSED CUcontext handle, unsigned int *version)

DRV_CALL(cuCtxSynchronize, device_sync(sim_device()), void)

SIM_API CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct sim_ctx *ctx = handle ? ctx_check(handle) : ctx_current();

	return ctx ? DRV(device_sync(ctx->device)) : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	DRV_ENTER();
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}
