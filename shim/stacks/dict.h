/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a Python dict, and the attributes of an object, by reads that cannot fault. Python
 * 3.11 and later, but not its free-threaded builds. */
#pragma once

#include "python_offsets.h"

struct dict_items {
	uintptr_t keys, values; /* values 0: they are in the keys' entries */
};

typedef void dict_fn(void *ctx, uintptr_t name, uintptr_t value);

/* Finds the items of a dict; false: the layout is not known. */
bool dict_find(const struct python_offsets *o, uintptr_t dict, struct dict_items *out);
/* The same for the attributes of an object whose class was written in Python, from 3.14 on only
 * once its __dict__ was used; false: it has none. */
bool dict_find_attributes(const struct python_offsets *o, uintptr_t object, struct dict_items *out);
/* Calls fn for the first items, at most `most`, with the addresses of name and value. */
void dict_each(const struct dict_items *items, unsigned most, dict_fn *fn, void *ctx);
