/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code objects that a thread's walks found. One can be freed, and another made at its address,
 * between two walks: so each walk compares each code object once, however many of its frames it
 * has. Application threads, any lock held, GIL held or not: loads, and the thread's own memory.
 */
#pragma once

#include "../base/os.h"
#include "python.h"

#include <string.h>

/* The hash of a name, or of its first 64 bytes: names in static memory can lack a hash. */
uint64_t python_name_hash(const struct python_offsets *o, uintptr_t name);

static inline uintptr_t load(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

static inline uint32_t load32(uintptr_t address)
{
	return *(const uint32_t *)address;
}

/* Whether k is still the code object at its address. That is alive, because a frame that was just
 * found has it. */
static inline __attribute__((always_inline)) bool
python_code_is(const struct python_offsets *o, struct python_code *k, uint64_t walk)
{
	bool is;

	if (o->code_version >= 0 && k->version)
		is = load32(k->code + (uintptr_t)o->code_version) == k->version;
	else
		is = load(k->code + (uintptr_t)o->code_name) == k->name &&
		     load(k->code + (uintptr_t)o->code_file) == k->file &&
		     load(k->code + (uintptr_t)o->code_table) == k->table &&
		     load32(k->code + (uintptr_t)o->code_first_line) == k->first_line &&
		     (OS_LIKELY(load(k->name + (uintptr_t)o->str_hash) == k->name_hash) ||
		      python_name_hash(o, k->name) == k->name_hash);
	if (OS_LIKELY(is))
		k->seen = walk;
	return is;
}

/* The entry of the live code object at this address; the same code object has the same entry until
 * the table is emptied. */
struct python_code *python_code_known(const struct python_offsets *o, struct python_codes *t,
				      uintptr_t code, uint64_t walk);

/* Call it before a walk. True: the table was emptied, so all earlier entries are void. */
static inline bool python_codes_begin(struct python_codes *t)
{
	if (OS_LIKELY(t->count + PYTHON_MOST <= PYTHON_CODES))
		return false;
	memset(t->by_address, 0, sizeof(t->by_address));
	t->count = 0;
	return true;
}
