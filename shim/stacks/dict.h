/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a Python dict, by reads that cannot fault; from 3.11 on, not of free threading. */
#pragma once

#include "python_offsets.h"

/* Its first items, at most `most` of them, names and values as they are. */
void dict_each(const struct python_offsets *o, uintptr_t dict, unsigned most,
	       void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx);
