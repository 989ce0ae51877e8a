/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a Python dict, and the attributes of an object, by reads that cannot fault;
 * from 3.11 on, not of free threading. */
#pragma once

#include "python_offsets.h"

struct dict_items {
	uintptr_t keys, values; /* 0: the values stand among the keys */
};

typedef void dict_fn(void *ctx, uintptr_t name, uintptr_t value);

/* Where a dict has its items; false: it is not known. */
bool dict_find(const struct python_offsets *o, uintptr_t dict, struct dict_items *out);
/* The same of the attributes of an object whose class was written in Python, from 3.14 on only once
 * its __dict__ was used; false: it has none. */
bool dict_find_attributes(const struct python_offsets *o, uintptr_t object, struct dict_items *out);
/* The first of them, at most `most`, names and values as they are. */
void dict_each(const struct dict_items *items, unsigned most, dict_fn *fn, void *ctx);
