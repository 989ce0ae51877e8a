/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meaning of CUPTI's callbacks: the table of callbacks.def, and events made from it.
 */
#pragma once

#include "cupti_abi.h"

void cupti_calls_each(void (*fn)(int domain, uint32_t id, void *ctx), void *ctx);

/* Asks for the device of a context; NULL = there is no such function. */
extern int (*cupti_device_of)(void *context, uint32_t *device);

/* The subscriber's callback. */
void cupti_call(void *user, int domain, uint32_t id, const struct cupti_data *data);
