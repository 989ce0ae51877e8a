/* SPDX-License-Identifier: Apache-2.0
 *
 * For the functions of runtime and driver that a CUPTI subscriber gets callbacks for (tools.h).
 * CUPTI's own headers do not bear the older driver ABI beside them; these, which they are made of,
 * do.
 */
#ifndef SIMGPU_TOLD_H
#define SIMGPU_TOLD_H

#include "cudart.h"
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

/* First thing in a function's body: its CUPTI name and its arguments. Its result is what RT() or
 * DRV() last made of one. */
#define TOLD(domain, id, type, ...)                                                                \
	type told_params = { __VA_ARGS__ };                                                        \
	struct tool_call told                                                                      \
		__attribute__((cleanup(tool_end))) = { domain, id, __func__, &told_params, 0, 0 }; \
	if (__atomic_load_n(&tool_active, __ATOMIC_RELAXED))                                       \
	tool_begin(&told)

#define TOLD_RT(name, ...) \
	TOLD(TOOL_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##name, name##_params, __VA_ARGS__)
#define TOLD_DRV(name, ...) \
	TOLD(TOOL_DRIVER, CUPTI_DRIVER_TRACE_CBID_##name, name##_params, __VA_ARGS__)

#endif
