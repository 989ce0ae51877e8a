/* SPDX-License-Identifier: Apache-2.0 */
#include "dict.h"

#include "../base/file.h"

/* PyDictObject after its head: number of items, a tag, the keys, values (if keys are shared). */
struct dict {
	uint64_t used, tag;
	uintptr_t keys, values;
};

/* PyDictKeysObject. Indices follow, then entries; these have a hash if not all keys are strings. */
struct keys {
	uint64_t references;
	uint8_t log2_size, log2_index_bytes, kind, reserved;
	uint32_t version;
	uint64_t usable, entries;
};

/* PyTypeObject. */
struct type {
	uint64_t head[4], size, rest[16], flags;
};

enum {
	TYPE_INLINE_VALUES = 1 << 2,
	TYPE_HAS_DICT = 1 << 4, /* managed by the type */
	VALUES_HEAD = 8,	/* bytes before the values, from 3.13 on */
	VALUES_VALID = 24,	/* bit in them: the values are valid */
};

/* KIND_SHARED: the objects of a class share the keys, and each has values of its own. */
enum { KIND_GENERAL, KIND_STRINGS, KIND_SHARED };

static bool is_known(const struct python_offsets *o)
{
	return o->minor >= 11 && o->object_type == 8;
}

void dict_each(const struct dict_items *items, unsigned most, dict_fn *fn, void *ctx)
{
	struct keys k;
	uintptr_t at, entry[3], value;

	if (!file_peek(&k, items->keys, sizeof(k)) || k.log2_index_bytes > 32 ||
	    k.kind > (items->values ? KIND_SHARED : KIND_STRINGS))
		return;
	at = items->keys + sizeof(k) + ((uintptr_t)1 << k.log2_index_bytes);
	for (uint64_t i = 0; i < k.entries && i < most; i++) {
		unsigned words = k.kind == KIND_GENERAL ? 3 : 2;

		if (!file_peek(entry, at + i * words * 8, words * 8))
			return;
		value = items->values ? file_peek_word(items->values + i * 8) : entry[words - 1];
		if (value)
			fn(ctx, entry[words - 2], value);
	}
}

bool dict_find(const struct python_offsets *o, uintptr_t dict, struct dict_items *out)
{
	struct dict d;

	if (!is_known(o) || !dict ||
	    !file_peek(&d, dict + (uintptr_t)o->object_type + 8, sizeof(d)))
		return false;
	*out = (struct dict_items){ d.keys, d.values };
	if (d.values && o->minor >= 13)
		out->values += VALUES_HEAD;
	return true;
}

/* An object's own values, which it has until its __dict__ is used: before the object, after it from
 * 3.13 on. 0 = it has none; *dict: its dict instead. */
static uintptr_t own_values(const struct python_offsets *o, uintptr_t object, const struct type *t,
			    uintptr_t *dict)
{
	*dict = file_peek_word(object - 24);
	if (o->minor == 11)
		return file_peek_word(object - 32);
	if (o->minor == 12)
		return *dict & 1 ? *dict + 1 : 0;
	if (*dict || !(t->flags & TYPE_INLINE_VALUES) ||
	    !(file_peek_word(object + t->size) >> VALUES_VALID & 1))
		return 0;
	return object + t->size + VALUES_HEAD;
}

bool dict_find_attributes(const struct python_offsets *o, uintptr_t object, struct dict_items *out)
{
	uintptr_t type, dict, values;
	struct type t;

	if (!is_known(o))
		return false;
	type = file_peek_word(object + (uintptr_t)o->object_type);
	if (!file_peek(&t, type, sizeof(t)) || !(t.flags & TYPE_HAS_DICT))
		return false;
	values = own_values(o, object, &t, &dict);
	if (!values)
		return dict_find(o, dict, out);
	if (o->type_keys < 0)
		return false;
	*out = (struct dict_items){ file_peek_word(type + (uintptr_t)o->type_keys), values };
	return true;
}
