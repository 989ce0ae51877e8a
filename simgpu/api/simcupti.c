/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's names. There is one subscriber at a time, as with the real library. It gets callbacks for
 * the functions that allocate and free memory (tools.h), on the calling thread. Kernels do nothing
 * here, so there are no activity records, and the device's part of a profile is empty.
 */
#include <time.h>
#include <cupti.h>
#include "../core/devices.h"
#include "../core/work.h"
#include "../core/tools.h"

SIM_API CUptiResult cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	/* xxyyzz since 13.0, small numbers before. */
	*version = sim_cuda_major() >= 13 ? (uint32_t)sim_cuda_version() * 10 : 24;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
	struct timespec t;

	if (!ns)
		return CUPTI_ERROR_INVALID_PARAMETER;
	clock_gettime(CLOCK_REALTIME, &t);
	*ns = (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
	return CUPTI_SUCCESS;
}

static const struct text {
	int code;
	const char *name, *sentence;
} texts[] = {
	{ CUPTI_SUCCESS, "CUPTI_SUCCESS", "no error" },
	{ CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER", "invalid parameter" },
	{ CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED", "limit reached" },
	{ CUPTI_ERROR_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED", "not supported" },
	{ CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
	  "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "there is a subscriber already" },
};

static const struct text *find_text(CUptiResult result)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == (int)result)
			return &texts[i];
	return NULL;
}

SIM_API CUptiResult cuptiGetResultString(CUptiResult result, const char **string)
{
	const struct text *t = find_text(result);

	*string = t ? t->name : "CUPTI_ERROR_UNKNOWN";
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **string)
{
	const struct text *t = find_text(result);

	*string = t ? t->sentence : "unknown error";
	return CUPTI_SUCCESS;
}

/* ---- activities: none ---- */

SIM_API CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size,
					       CUpti_Activity **record)
{
	(void)buffer, (void)size;
	*record = NULL;
	return CUPTI_ERROR_MAX_LIMIT_REACHED;
}

SIM_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext ctx, uint32_t stream,
						      size_t *dropped)
{
	(void)ctx, (void)stream;
	*dropped = 0;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
							  uint64_t *last)
{
	(void)kind;
	if (last)
		*last = 0;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetDeviceId(CUcontext ctx, uint32_t *device)
{
	struct sim_ctx *c = ctx_check(ctx);

	*device = c ? c->device : 0;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetContextId(CUcontext ctx, uint32_t *id)
{
	struct sim_ctx *c = ctx_check(ctx);

	*id = c ? (uint32_t)c->id : 0;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetStreamIdEx(CUcontext ctx, CUstream stream, uint8_t per_thread,
				       uint32_t *id)
{
	unsigned long long value = 0;

	(void)ctx, (void)per_thread;
	stream_id(stream, &value);
	*id = (uint32_t)value;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	*type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
	return CUPTI_SUCCESS;
}
