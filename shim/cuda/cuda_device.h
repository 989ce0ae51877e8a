/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hook's queries about the device. Application threads, inside a hook, any lock held.
 */
#pragma once

#include "../capture.h"
#include "call.h"

int device_current(const struct call *c); /* -1 = not known */
int device_of_driver(void);
bool device_capturing(uint64_t stream);
void device_describe(const struct call *c, int device); /* its facts, once */
/* Records "device.N.context" once for each device, except `but`, on which a context exists. */
void device_tell_contexts(const struct call *c, int but);
uint64_t driver_range_size(uint64_t address); /* bytes of the allocation around it; 0 = not known */
