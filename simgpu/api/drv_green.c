/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts: contexts that own a part of the multiprocessors. Work on them takes as long as on
 * the whole card here. Any thread.
 */
#include <string.h>
#include "cudart.h"

#define GREEN_KIND    SIM_KIND('G', 'R', 'N', '1')
#define RESOURCE_KIND SIM_KIND('R', 'E', 'S', '1')

struct green {
	struct sim_ctx *ctx;
	CUdevResource resource;
};

/* The smallest group of at least `sms` multiprocessors: a multiple of 8 from compute capability 9.0
 * on, before a multiple of 2 and at least 4. */
static unsigned int round_up(unsigned int sms, unsigned int *step)
{
	bool new = sim_card()->major >= 9;
	unsigned int least = new ? 8 : 4;

	*step = new ? 8 : 2;
	sms = (sms + *step - 1) / *step * *step;
	return sms < least ? least : sms;
}

static CUdevResource some(unsigned int sms)
{
	CUdevResource r;

	memset(&r, 0, sizeof(r));
	r.type = sms ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
	r.sm.smCount = sms;
	if (sms)
		r.sm.minSmPartitionSize = round_up(1, &r.sm.smCoscheduledAlignment);
	return r;
}

static int give_resource(CUdevResource *resource, CUdevResourceType type, unsigned int sms)
{
	if (!resource)
		return SIM_INVALID;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return SIM_UNSUPPORTED;
	*resource = some(sms);
	return SIM_OK;
}

static struct green *green_of(CUgreenCtx green)
{
	return sim_handle_check(green, GREEN_KIND);
}

SIM_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
					CUdevResourceType type)
{
	if (device < 0 || device >= sim_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	return DRV(give_resource(resource, type, sim_card()->sms));
}

SIM_API CUresult cuCtxGetDevResource(CUcontext ctx, CUdevResource *resource, CUdevResourceType type)
{
	struct sim_ctx *c = ctx_check(ctx);

	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	return DRV(give_resource(resource, type, c->sms ? c->sms : (unsigned int)sim_card()->sms));
}

SIM_API CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource,
					  CUdevResourceType type)
{
	return green_of(green)
		       ? DRV(give_resource(resource, type, green_of(green)->resource.sm.smCount))
		       : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
					     const CUdevResource *input, CUdevResource *rest,
					     unsigned int flags, unsigned int least)
{
	unsigned int step, size = round_up(least, &step), n;

	if (!groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM || (flags & ~3u))
		return CUDA_ERROR_INVALID_VALUE;
	n = input->sm.smCount / size;
	if (result && *groups < n)
		n = *groups;
	if (!n)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	for (unsigned int i = 0; result && i < n; i++)
		result[i] = some(size);
	*groups = n;
	if (rest)
		*rest = some(input->sm.smCount - n * size);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
					   unsigned int n)
{
	unsigned int sms = 0;
	CUdevResource *sum;

	if (!desc || !resources || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++) {
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		sms += resources[i].sm.smCount;
	}
	sum = sim_handle(RESOURCE_KIND, sizeof(*sum)); /* never freed, as on a card */
	if (!sum)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*sum = some(sms);
	*desc = (CUdevResourceDesc)sum;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device,
				  unsigned int flags)
{
	const CUdevResource *resource = sim_handle_check(desc, RESOURCE_KIND);
	struct green *g;
	int result;

	if (!out || !resource || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	result = ctx_activate(device);
	if (result)
		return DRV(result);
	g = sim_handle(GREEN_KIND, sizeof(*g));
	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->resource = *resource;
	g->ctx = ctx_create_part(device, resource->sm.smCount);
	if (!g->ctx) {
		sim_handle_free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = (CUgreenCtx)g;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	struct green *g = green_of(green);

	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_destroy(g->ctx);
	sim_handle_free(g);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	if (!ctx || !green_of(green))
		return ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)green_of(green)->ctx;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id)
{
	if (!id || !green_of(green))
		return id ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*id = green_of(green)->ctx->id;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
					int priority)
{
	struct green *g = green_of(green);
	int result;

	if (!g || !(flags & CU_STREAM_NON_BLOCKING))
		return g ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	result = ctx_push(g->ctx);
	if (!result) {
		result = stream_create((void **)stream, flags, priority);
		ctx_pop(NULL);
	}
	return DRV(result);
}
