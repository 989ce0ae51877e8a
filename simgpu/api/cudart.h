/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files that define the public functions of runtime and driver: the headers with every
 * ABI version of the driver declared, and the prologues.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "../core/contents.h"
#include "../core/devices.h"
#include "../core/memory.h"
#include "../core/work.h"
#include "../core/tools.h"

/* A runtime call's result: remembered as the thread's last error. */
#define RT(result) ((cudaError_t)(call_result = sim_error(result)))
/* Runtime calls that need a device begin with this. */
#define RT_ENTER()                          \
	do {                                \
		int entered = sim_enter();  \
		if (entered)                \
			return RT(entered); \
	} while (0)
#define DRV(result) ((CUresult)(call_result = (int)(result)))
#define DRV_ENTER()                               \
	do {                                      \
		int entered = sim_enter_driver(); \
		if (entered)                      \
			return DRV(entered);      \
	} while (0)

/* A public function as one row: its name, its result, its arguments. CALL is for functions that
 * need a device (the driver's: a context), PLAIN for functions that need none, ANSWER for functions
 * that write a value and never fail. */
#define RT_CALL(name, result, ...)            \
	SIM_API cudaError_t name(__VA_ARGS__) \
	{                                     \
		RT_ENTER();                   \
		return RT(result);            \
	}
#define RT_PLAIN(name, result, ...)           \
	SIM_API cudaError_t name(__VA_ARGS__) \
	{                                     \
		return RT(result);            \
	}
#define DRV_CALL(name, result, ...)        \
	SIM_API CUresult name(__VA_ARGS__) \
	{                                  \
		DRV_ENTER();               \
		return DRV(result);        \
	}
#define DRV_ANSWER(name, write, ...)       \
	SIM_API CUresult name(__VA_ARGS__) \
	{                                  \
		write;                     \
		return CUDA_SUCCESS;       \
	}
#define DRV_PLAIN(name, result, ...)       \
	SIM_API CUresult name(__VA_ARGS__) \
	{                                  \
		return DRV(result);        \
	}

/* uncomputed.c: a copy to the host was made; counted if not all of it was known. */
void value_read(const void *dst, const void *src, size_t bytes);
/* Whether a kernel is of a module that the program loaded, not of the runtime; drv_module.c. */
bool function_check(void *function);
