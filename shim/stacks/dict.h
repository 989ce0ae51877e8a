/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a Python dict, and the attributes of an object, by reads that cannot fault;
 * from 3.11 on, not of free threading. */
#pragma once

#include "python_offsets.h"

/* Its first items, at most `most` of them, names and values as they are. */
void dict_each(const struct python_offsets *o, uintptr_t dict, unsigned most,
	       void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx);
bool dict_has_attributes(const struct python_offsets *o, uintptr_t object);
/* Of an object of a class that was written in Python. From 3.14 on only once its __dict__ was used.
 */
void dict_each_attribute(const struct python_offsets *o, uintptr_t object, unsigned most,
			 void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx);
