/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions for the runtime, each looked up once (../core/driver.c). A call of the
 * runtime leads to one call of the driver.
 */
#pragma once

#include "cudart.h"

/* The base name, the exported symbol, and the CUDA version whose ABI that is. */
#define DRIVER_CALLS(ROW)                                               \
	ROW(cuLaunchKernel, cuLaunchKernel, 4000)                       \
	ROW(cuLaunchKernelEx, cuLaunchKernelEx, 11060)                  \
	ROW(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000) \
	ROW(cuGraphLaunch, cuGraphLaunch, 10000)

struct driver_calls {
#define ROW(name, symbol, version) typeof(symbol) *name;
	DRIVER_CALLS(ROW)
#undef ROW
};

const struct driver_calls *driver(void);
