/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds code objects by their addresses. The table only grows; it is emptied before a walk for
 * which it might have no room. Application threads, any lock held; never blocks or allocates.
 */
#include "python_code.h"

#include "../base/intern.h"

_Static_assert(PYTHON_CODES >= 2 * PYTHON_MOST, "there is room for a walk in which all are new");

uint64_t python_name_hash(const struct python_offsets *o, uintptr_t name)
{
	uint64_t hash = load(name + (uintptr_t)o->str_hash), len;

	if (hash != UINT64_MAX)
		return hash;
	len = load(name + (uintptr_t)o->str_length);
	return intern_hash_bytes((const void *)(name + (uintptr_t)o->str_ascii),
				 len < 64 ? len : 64);
}

/* Reads what identifies a code object: from 3.12 on its number, before that several facts. */
static void read_code(const struct python_offsets *o, struct python_code *k)
{
	uint64_t h;

	k->version = o->code_version >= 0 ? load32(k->code + (uintptr_t)o->code_version) : 0;
	k->first_line = load32(k->code + (uintptr_t)o->code_first_line);
	k->name = load(k->code + (uintptr_t)o->code_name);
	k->file = load(k->code + (uintptr_t)o->code_file);
	k->table = load(k->code + (uintptr_t)o->code_table);
	k->check = k->version;
	if (k->version)
		return;
	/* a name in static memory never changes, so it needs no hash */
	k->name_hash = load(k->name + (uintptr_t)o->str_hash);
	if (k->name_hash == UINT64_MAX && !python_is_static(k->name))
		k->name_hash = python_name_hash(o, k->name);
	h = k->name_hash ^ k->first_line;
	h = h * 0xd6e8feb86659fd93ULL + k->name;
	h = (h ^ h >> 29) * 0xd6e8feb86659fd93ULL + k->file;
	h = (h ^ h >> 29) * 0xd6e8feb86659fd93ULL + k->table;
	k->check = h | 1ULL << 63; /* never a version */
}

static struct python_code *add_code(const struct python_offsets *o, struct python_codes *t,
				    uint16_t *place, uintptr_t code, uint64_t walk)
{
	struct python_code *k = &t->codes[t->count++];

	k->code = code;
	k->seen = walk;
	read_code(o, k);
	*place = (uint16_t)t->count;
	return k;
}

struct python_code *python_code_known(const struct python_offsets *o, struct python_codes *t,
				      uintptr_t code, uint64_t walk)
{
	uint32_t at = (uint32_t)((code * 0x9e3779b97f4a7c15ULL) >> 52);

	_Static_assert(2 * PYTHON_CODES == 1u << (64 - 52), "the shift makes a place");
	for (;; at = (at + 1) % (2 * PYTHON_CODES)) {
		uint16_t *place = &t->by_address[at];
		struct python_code *k;

		if (!*place)
			return add_code(o, t, place, code, walk);
		k = &t->codes[*place - 1];
		if (k->code != code)
			continue;
		if (k->seen == walk || python_code_is(o, k, walk))
			return k;
		k->code = PYTHON_GONE;
		return add_code(o, t, place, code, walk);
	}
}
