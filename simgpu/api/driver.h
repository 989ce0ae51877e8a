/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions as the runtime and the libraries find them: looked up once through
 * cuGetProcAddress, as NVIDIA's do, so that a tool that stands between them and the driver sees
 * what they launch, copy and set. A call of theirs leads to one call of the driver.
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
/* cuGetProcAddress_v2 as a runtime finds it; entrypoints.c. */
typeof(cuGetProcAddress_v2) *driver_lookup(void);
