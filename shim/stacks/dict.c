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

/* PyTypeObject. */
struct type {
	uint64_t head[4], size, rest[16], flags;
};

enum {
	TYPE_INLINE_VALUES = 1 << 2,
	TYPE_HAS_DICT = 1 << 4, /* which it manages itself */
	VALUES_HEAD = 8,	/* four bytes, from 3.13 on */
	VALUES_VALID = 24,	/* the last of them, as a bit */
};

/* KIND_SHARED: of all objects of a class, and each has values of its own. */
enum { KIND_GENERAL, KIND_STRINGS, KIND_SHARED };

struct walk {
	uintptr_t keys, values; /* 0: among the keys */
	unsigned most;
	void (*fn)(void *ctx, uintptr_t name, uintptr_t value);
	void *ctx;
};

static void walk(const struct walk *w)
{
	struct keys k;
	uintptr_t at, entry[3], value;

	if (!file_peek(&k, w->keys, sizeof(k)) || k.log2_index_bytes > 32 ||
	    k.kind > (w->values ? KIND_SHARED : KIND_STRINGS))
		return;
	at = w->keys + sizeof(k) + ((uintptr_t)1 << k.log2_index_bytes);
	for (uint64_t i = 0; i < k.entries && i < w->most; i++) {
		unsigned words = k.kind == KIND_GENERAL ? 3 : 2;

		if (!file_peek(entry, at + i * words * 8, words * 8))
			return;
		value = w->values ? file_peek_word(w->values + i * 8) : entry[words - 1];
		if (value)
			w->fn(w->ctx, entry[words - 2], value);
	}
}

static bool is_known(const struct python_offsets *o)
{
	return o->minor >= 11 && o->object_type == 8;
}

void dict_each(const struct python_offsets *o, uintptr_t dict, unsigned most,
	       void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx)
{
	struct dict d;

	if (!is_known(o) || !dict ||
	    !file_peek(&d, dict + (uintptr_t)o->object_type + 8, sizeof(d)))
		return;
	if (d.values && o->minor >= 13)
		d.values += VALUES_HEAD;
	walk(&(struct walk){ d.keys, d.values, most, fn, ctx });
}

/* False: its objects have no attributes that are known. */
static bool read_type(const struct python_offsets *o, uintptr_t type, struct type *t)
{
	return is_known(o) && file_peek(t, type, sizeof(*t)) && t->flags & TYPE_HAS_DICT;
}

bool dict_has_attributes(const struct python_offsets *o, uintptr_t object)
{
	struct type t;

	return read_type(o, file_peek_word(object + (uintptr_t)o->object_type), &t);
}

/* An object's values, as long as nobody asked for its __dict__: before the object, behind it from
 * 3.13 on. *dict: what is there instead. */
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

void dict_each_attribute(const struct python_offsets *o, uintptr_t object, unsigned most,
			 void (*fn)(void *ctx, uintptr_t name, uintptr_t value), void *ctx)
{
	uintptr_t type = file_peek_word(object + (uintptr_t)o->object_type), dict, values;
	struct type t;

	if (!read_type(o, type, &t))
		return;
	values = own_values(o, object, &t, &dict);
	if (!values)
		dict_each(o, dict, most, fn, ctx);
	else if (o->type_keys >= 0)
		walk(&(struct walk){ file_peek_word(type + (uintptr_t)o->type_keys), values, most,
				     fn, ctx });
}
