/* SPDX-License-Identifier: Apache-2.0
 *
 * For the functions of runtime and driver that a CUPTI subscriber gets callbacks for (tools.h).
 * CUPTI's own headers do not bear the older driver ABI beside them; these, which they are made of,
 * do.
 */
#pragma once

#include "cudart.h"
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

/* First thing in a function's body: its CUPTI name and its arguments. Its result is what RT() or
 * DRV() last made of one. */
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

/* The rows of cudart.h with the arguments that a subscriber gets, and the version in the name that
 * CUPTI has for a function of the runtime. */
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
