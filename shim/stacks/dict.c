/* SPDX-License-Identifier: Apache-2.0 */
#include "dict.h"

#include "../base/file.h"

/* PyDictObject, behind its head: how many, a tag, the keys, values (where keys are shared). */
struct dict {
	uint64_t used, tag;
	uintptr_t keys, values;
};

/* PyDictKeysObject; behind it indices, then entries: with a hash where not all keys are strings. */
struct keys {
	uint64_t references;
	uint8_t log2_size, log2_index_bytes, kind, reserved;
	uint32_t version;
	uint64_t usable, entries;
};

enum { KIND_GENERAL, KIND_STRINGS }; /* others share keys: objects of one class */

void dict_each(const struct python_offsets *o, uintptr_t dict, unsigned most,
	       void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx)
{
	struct dict d;
	struct keys k;
	uintptr_t at, entry[3];

	if (o->minor < 11 || o->object_type != 8 || !dict ||
	    !file_peek(&d, dict + (uintptr_t)o->object_type + 8, sizeof(d)) ||
	    !file_peek(&k, d.keys, sizeof(k)) || k.log2_index_bytes > 32 || k.kind > KIND_STRINGS)
		return;
	at = d.keys + sizeof(k) + ((uintptr_t)1 << k.log2_index_bytes);
	for (uint64_t i = 0; i < k.entries && i < most; i++) {
		unsigned words = k.kind == KIND_GENERAL ? 3 : 2;

		if (!file_peek(entry, at + i * words * 8, words * 8))
			return;
		if (entry[words - 1])
			fn(ctx, entry[words - 2], entry[words - 1]);
	}
}
