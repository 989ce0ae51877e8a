/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_variables.h"

#include "../base/file.h"
#include "code.h"
#include "dict.h"

#include <string.h>

#define VARIABLES_MOST 64u /* variables of a function that are looked at */
#define GLOBALS_MOST   512u
#define NAME_MOST      200u /* bytes; a variable with a longer name is left out */
#define FRAMES_MOST \
	16384u /* outside of refusals: takes a second in all, for stacks that keep changing */
#define REFUSALS_MOST	64u   /* a program can go on asking */
#define ITEMS_MOST	1024u /* items of a list */
#define ATTRIBUTES_MOST 64u   /* attributes of an object */
#define NODES		(1u << 20)

static variable_reader *reader;
static uint64_t recorded[NODES / 64]; /* a bit for each node, by the lower bits of its number */
static uint32_t last_id, frames, refusals;

void variables_read_by(variable_reader *r)
{
	__atomic_store_n(&reader, r, __ATOMIC_RELEASE);
}

bool variables_are_new(uint32_t node)
{
	uint64_t *word = &recorded[node / 64 % (NODES / 64)], bit = 1ull << node % 64;

	return !(__atomic_load_n(word, __ATOMIC_RELAXED) & bit) &&
	       !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit) &&
	       __atomic_fetch_add(&frames, 1, __ATOMIC_RELAXED) < FRAMES_MOST;
}

void variables_forget(void)
{
	memset(recorded, 0, sizeof(recorded));
	last_id = frames = refusals = 0;
}

bool variables_of_refusal(void)
{
	return __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED) < REFUSALS_MOST;
}

static uintptr_t type_of(const struct python_offsets *o, uintptr_t object)
{
	return file_peek_word(object + (uintptr_t)o->object_type);
}

/* The object of a variable. A variable that inner functions use is a cell with the object. */
static uintptr_t object_of(const struct python_offsets *o, uintptr_t value)
{
	uintptr_t object = value & ~(uintptr_t)7;

	if (object && type_of(o, object) == python_type(PYTHON_CELL))
		return file_peek_word(object + (uintptr_t)o->object_type + 8);
	return object;
}

/* The address of a list's or tuple's items; 0: it is neither. From 3.14 on a tuple's hash is before
 * its items. */
static uintptr_t items_of(const struct python_offsets *o, uintptr_t object, uintptr_t type,
			  uint64_t *count)
{
	uintptr_t at = object + (uintptr_t)o->object_type + 8;

	*count = file_peek_word(at);
	if (type == python_type(PYTHON_LIST))
		return file_peek_word(at + 8);
	return type == python_type(PYTHON_TUPLE) ? at + (o->minor >= 14 ? 16 : 8) : 0;
}

/* A frame that is being recorded. */
struct frame_record {
	const struct python_offsets *o;
	variable_reader *read;
	struct variables_seen *seen; /* NULL: only tensors */
	uintptr_t object_name;	     /* of the object whose attributes are recorded; 0 = none */
	struct gmt_def_variables head;
	uint8_t *buf;
	uint32_t len;
};

/* Sums over the tensors of a list, tuple or dict, and of those in it. */
struct items {
	const struct frame_record *of;
	struct variable all;
	uint64_t storage; /* of the previous tensor */
	int depth;
};

static void add_items(struct items *s, uintptr_t object, uintptr_t type);

static void add_item(void *ctx, uintptr_t name, uintptr_t object)
{
	struct items *s = ctx;
	struct variable v = { 0 };
	uintptr_t type = type_of(s->of->o, object);

	(void)name;
	if (python_is_static(type))
		add_items(s, object, type);
	if (python_is_static(type) || !s->of->read(object, &v))
		return;
	if (!s->all.head.tensors)
		s->all = v;
	else if (v.storage != s->storage)
		s->all.head.bytes += v.head.bytes;
	s->all.head.tensors++;
	s->storage = v.storage;
}

static void add_items(struct items *s, uintptr_t object, uintptr_t type)
{
	enum { AT_ONCE = 16, DEEPEST = 2 };
	const struct python_offsets *o = s->of->o;
	uintptr_t items[AT_ONCE];
	struct dict_items dict;
	uint64_t count, at = items_of(o, object, type, &count);

	if (s->depth == DEEPEST)
		return;
	s->depth++;
	if (type == python_type(PYTHON_DICT) && dict_find(o, object, &dict))
		dict_each(&dict, ITEMS_MOST, add_item, s);
	count = at && count < ITEMS_MOST ? count : at ? ITEMS_MOST : 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t part = count - i < AT_ONCE ? count - i : AT_ONCE;

		if (i % AT_ONCE == 0 && !file_peek(items, at + i * 8, part * 8))
			break;
		add_item(s, 0, items[i % AT_ONCE]);
	}
	s->depth--;
}

/* The interpreter's own types are no tensors. */
static bool read_variable(const struct frame_record *t, uintptr_t object, struct variable *v)
{
	uintptr_t type = type_of(t->o, object);
	struct items s = { .of = t };

	if (!python_is_static(type))
		return t->read(object, v);
	if (t->seen)
		add_items(&s, object, type);
	*v = s.all;
	return v->head.tensors;
}

/* Copies a short str, which might be freed already: code_text reads a copy of its memory. Returns
 * the bytes; 0: it is too long. */
static uint32_t copy_name(const struct python_offsets *o, uintptr_t name, uint8_t *out)
{
	uint8_t copy[128 + NAME_MOST];
	uint64_t len = file_peek_word(name + (uintptr_t)o->str_length);
	size_t bytes = (size_t)o->str_compact + len * 4;

	if (len > NAME_MOST / 4 || !file_peek(copy, name, bytes))
		return 0;
	return code_text((uintptr_t)copy, out);
}

/* "name", or "object.name". */
static uint32_t copy_path(const struct frame_record *t, uintptr_t name, uint8_t *out)
{
	uint32_t before = t->object_name ? copy_name(t->o, t->object_name, out) : 0, len;

	if (t->object_name && !before)
		return 0;
	if (before)
		out[before++] = '.';
	len = copy_name(t->o, name, out + before);
	return len ? before + len : 0;
}

static void record_variable(void *ctx, uintptr_t name, uintptr_t value)
{
	struct frame_record *t = ctx;
	uintptr_t object = object_of(t->o, value);
	struct variable v = { 0 };
	uint32_t sizes, at, len;

	if (t->len + sizeof(v) + 2 * CODE_TEXT_MAX >= GMT_DEF_MAX || !object ||
	    !read_variable(t, object, &v))
		return;
	sizes = v.head.dims * 8u;
	at = t->len + (uint32_t)sizeof(v.head) + sizes;
	len = copy_path(t, name, t->buf + at);
	if (!len || len > NAME_MOST)
		return;
	v.head.name_len = (uint8_t)len;
	memcpy(t->buf + t->len, &v.head, sizeof(v.head));
	memcpy(t->buf + at - sizes, v.sizes, sizes);
	t->len = at + len;
	t->head.count++;
}

/* A module's own dicts hold the model, which is no variable of the program. */
static bool is_of_model(const struct frame_record *t, uintptr_t name)
{
	uint8_t text[CODE_TEXT_MAX];
	uint32_t len = copy_name(t->o, name, text);

	return (len == 11 && !memcmp(text, "_parameters", 11)) ||
	       (len == 8 && !memcmp(text, "_buffers", 8));
}

static void record_attribute(void *ctx, uintptr_t name, uintptr_t value)
{
	if (!is_of_model(ctx, name))
		record_variable(ctx, name, value);
}

/* An object in several frames, as self often is, is recorded with the innermost one. */
static bool is_first_seen(struct variables_seen *seen, uintptr_t object)
{
	for (unsigned i = 0; i < seen->count; i++)
		if (seen->objects[i] == object)
			return false;
	if (seen->count == VARIABLES_SEEN)
		return false;
	seen->objects[seen->count++] = object;
	return true;
}

static void record_attributes(void *ctx, uintptr_t name, uintptr_t value)
{
	struct frame_record *t = ctx;
	uintptr_t object = object_of(t->o, value);
	struct dict_items attributes;
	struct variable v = { 0 };

	if (!object || python_is_static(type_of(t->o, object)) || t->read(object, &v) ||
	    !dict_find_attributes(t->o, object, &attributes) || !is_first_seen(t->seen, object))
		return;
	t->object_name = name;
	dict_each(&attributes, ATTRIBUTES_MOST, record_attribute, t);
	t->object_name = 0;
}

static void each_of_function(struct frame_record *t, uintptr_t frame, uintptr_t names, dict_fn *fn)
{
	uintptr_t name[VARIABLES_MOST], value[VARIABLES_MOST];
	uint64_t count, at = items_of(t->o, names, python_type(PYTHON_TUPLE), &count);

	count = count < VARIABLES_MOST ? count : VARIABLES_MOST;
	if (!at || !file_peek(name, at, count * 8) ||
	    !file_peek(value, frame + (uintptr_t)t->o->frame_variables, count * 8))
		return;
	for (uint64_t i = 0; i < count; i++)
		fn(t, name[i], value[i]);
}

static bool is_module(const struct python_offsets *o, uintptr_t code)
{
	uint8_t name[CODE_TEXT_MAX];
	uint32_t len = copy_name(o, file_peek_word(code + (uintptr_t)o->code_name), name);

	return len == 8 && !memcmp(name, "<module>", 8);
}

static void each_variable(struct frame_record *t, const struct python_frame *f, dict_fn *fn)
{
	uintptr_t frame = f->at & ~(uintptr_t)1, code = f->code->code;
	struct dict_items globals;

	if (!is_module(t->o, code))
		each_of_function(t, frame, file_peek_word(code + (uintptr_t)t->o->code_variables),
				 fn);
	else if (dict_find(t->o, file_peek_word(frame + (uintptr_t)t->o->frame_globals), &globals))
		dict_each(&globals, GLOBALS_MOST, fn, t);
}

void variables_record(struct thread *t, const struct python_frame *f, uint32_t node,
		      struct variables_seen *seen, uint8_t *buf)
{
	struct frame_record r = {
		.o = python_layout(),
		.read = __atomic_load_n(&reader, __ATOMIC_ACQUIRE),
		.seen = seen,
		.head = { .seq = session_last_seq(), .node = node, .flags = seen != NULL },
		.buf = buf,
		.len = sizeof(r.head),
	};
	struct gmt_def d = { .kind = GMT_DEF_VARIABLES, .payload = buf };

	if (!r.read || !file_peeks_often())
		return;
	each_variable(&r, f, record_variable);
	if (seen)
		each_variable(&r, f, record_attributes);
	if (!r.head.count)
		return;
	memcpy(buf, &r.head, sizeof(r.head));
	d.len = r.len;
	d.id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	thread_push_def(t, &d);
}
