/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's callbacks (tools.h) for functions of runtime and driver. Of CUPTI's headers only those
 * below can be included with the older driver ABI.
 */
#pragma once

#include "cudart.h"
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

/* First statement in a function's body, with its CUPTI name and its arguments. The result for the
 * subscriber is the last one that RT() or DRV() got. */
#define TRACED(domain, id, type, ...)                                                 \
	type traced_params = { __VA_ARGS__ };                                         \
	struct tool_call traced __attribute__((                                       \
		cleanup(tool_end))) = { domain, id, __func__, &traced_params, 0, 0 }; \
	if (__atomic_load_n(&tool_active, __ATOMIC_RELAXED))                          \
	tool_begin(&traced)

#define TRACED_RT(name, ...) \
	TRACED(TOOL_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##name, name##_params, __VA_ARGS__)
#define TRACED_DRV(name, ...) \
	TRACED(TOOL_DRIVER, CUPTI_DRIVER_TRACE_CBID_##name, name##_params, __VA_ARGS__)

/* The rows of cudart.h with the arguments for the subscriber and, for the runtime, the version in
 * the function's CUPTI name. */
#define RT_TRACED(name, version, given, result, ...)       \
	SIM_API cudaError_t name(__VA_ARGS__)              \
	{                                                  \
		TRACED_RT(name##_##version, UNPACK given); \
		RT_ENTER();                                \
		return RT(result);                         \
	}
#define RT_TRACED_PLAIN(name, version, given, result, ...) \
	SIM_API cudaError_t name(__VA_ARGS__)              \
	{                                                  \
		TRACED_RT(name##_##version, UNPACK given); \
		return RT(result);                         \
	}
#define DRV_TRACED(name, given, result, ...)    \
	SIM_API CUresult name(__VA_ARGS__)      \
	{                                       \
		TRACED_DRV(name, UNPACK given); \
		DRV_ENTER();                    \
		return DRV(result);             \
	}
#define DRV_TRACED_PLAIN(name, given, result, ...) \
	SIM_API CUresult name(__VA_ARGS__)         \
	{                                          \
		TRACED_DRV(name, UNPACK given);    \
		return DRV(result);                \
	}
#define UNPACK(...) __VA_ARGS__
