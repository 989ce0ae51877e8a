/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions for the runtime, each looked up once (../core/driver_lookup.c). A call of
 * the runtime leads to one call of the driver.
 */
#pragma once

#include "cudart.h"

struct driver_calls {
#define CALL(name, symbol, version) typeof(symbol) *name;
#include "driver_calls.def"
#undef CALL
};

const struct driver_calls *driver(void);
/* The driver's form of a copy of the runtime; rt_copy.c. */
CUDA_MEMCPY3D driver_copy(const struct cudaMemcpy3DParms *p);
