/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes events of CUPTI's callbacks by the table in callbacks.def.
 */
#pragma once

#include "cupti_abi.h"

void cupti_calls_each(void (*fn)(int domain, uint32_t id, void *ctx), void *ctx);

/* cuptiGetDeviceId: sets a context's device and returns 0, else an error. NULL = not available. */
extern int (*cupti_device_of)(void *context, uint32_t *device);

/* The subscriber's callback. */
void cupti_call(void *user, int domain, uint32_t id, const struct cupti_data *data);
