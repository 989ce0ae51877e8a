/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_variables.h"

#include "../base/file.h"
#include "code.h"
#include "dict.h"

#include <string.h>

#define VARIABLES_MOST 64u /* of a function that are looked at */
#define GLOBALS_MOST   512u
#define NAME_MOST      200u   /* bytes; a variable with a longer name is left out */
#define FRAMES_MOST    16384u /* outside of refusals: a second, for stacks that go on changing */
#define REFUSALS_MOST  64u    /* a program may go on asking */
#define ITEMS_MOST     1024u  /* of a list */
#define NODES	       (1u << 20)

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

/* The object of a variable; one that inner functions use too has a cell, whose content counts. */
static uintptr_t object_of(const struct python_offsets *o, uintptr_t value)
{
	uintptr_t object = value & ~(uintptr_t)7;

	if (object && type_of(o, object) == python_type(PYTHON_CELL))
		return file_peek_word(object + (uintptr_t)o->object_type + 8);
	return object;
}

/* Where a list or tuple has its items; 0: it is neither. A tuple's hash is before them from 3.14
 * on.
 */
static uintptr_t items_of(const struct python_offsets *o, uintptr_t object, uint64_t *count)
{
	uintptr_t type = type_of(o, object), at = object + (uintptr_t)o->object_type + 8;

	*count = file_peek_word(at);
	if (type == python_type(PYTHON_LIST))
		return file_peek_word(at + 8);
	return type == python_type(PYTHON_TUPLE) ? at + (o->minor >= 14 ? 16 : 8) : 0;
}

/* A frame that is being recorded. */
struct frame_record {
	const struct python_offsets *o;
	variable_reader *read;
	bool lists;
	struct gmt_def_variables head;
	uint8_t *buf;
	uint32_t len;
};

/* The tensors of a list, tuple or dict, and of those in it. */
struct items {
	const struct frame_record *of;
	struct variable all;
	uint64_t storage; /* of the one before */
	int depth;
};

static void add_items(struct items *s, uintptr_t object);

static void add_item(void *ctx, uintptr_t name, uintptr_t object)
{
	struct items *s = ctx;
	struct variable v = { 0 };

	(void)name;
	if (!s->of->read(object, &v)) {
		add_items(s, object);
		return;
	}
	if (!s->all.head.tensors)
		s->all = v;
	else if (v.storage != s->storage)
		s->all.head.bytes += v.head.bytes;
	s->all.head.tensors++;
	s->storage = v.storage;
}

static void add_items(struct items *s, uintptr_t object)
{
	enum { AT_ONCE = 16, DEEPEST = 2 };
	const struct python_offsets *o = s->of->o;
	uintptr_t items[AT_ONCE];
	uint64_t count, at = items_of(o, object, &count);

	if (s->depth == DEEPEST)
		return;
	s->depth++;
	if (!at && type_of(o, object) == python_type(PYTHON_DICT))
		dict_each(o, object, ITEMS_MOST, add_item, s);
	count = at && count < ITEMS_MOST ? count : at ? ITEMS_MOST : 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t part = count - i < AT_ONCE ? count - i : AT_ONCE;

		if (i % AT_ONCE == 0 && !file_peek(items, at + i * 8, part * 8))
			break;
		add_item(s, 0, items[i % AT_ONCE]);
	}
	s->depth--;
}

static bool read_variable(const struct frame_record *t, uintptr_t object, struct variable *v)
{
	if (t->read(object, v))
		return true;
	if (t->lists) {
		struct items s = { .of = t };

		add_items(&s, object);
		*v = s.all;
	}
	return v->head.tensors;
}

/* A str of a few bytes, which may be gone; its copy lies as it does. */
static uint32_t copy_name(const struct python_offsets *o, uintptr_t name, uint8_t *out)
{
	uint8_t copy[128 + NAME_MOST];
	uint64_t len = file_peek_word(name + (uintptr_t)o->str_length);
	size_t bytes = (size_t)o->str_compact + len * 4;

	if (len > NAME_MOST / 4 || !file_peek(copy, name, bytes))
		return 0;
	return code_text((uintptr_t)copy, out);
}

static void record_variable(void *ctx, uintptr_t name, uintptr_t value)
{
	struct frame_record *t = ctx;
	uintptr_t object = object_of(t->o, value);
	struct variable v = { 0 };
	uint32_t sizes, at, len;

	if (t->len + sizeof(v) + CODE_TEXT_MAX >= GMT_DEF_MAX || !object ||
	    !read_variable(t, object, &v))
		return;
	sizes = v.head.dims * 8u;
	at = t->len + (uint32_t)sizeof(v.head) + sizes;
	len = copy_name(t->o, name, t->buf + at);
	if (!len || len > NAME_MOST)
		return;
	v.head.name_len = (uint8_t)len;
	memcpy(t->buf + t->len, &v.head, sizeof(v.head));
	memcpy(t->buf + at - sizes, v.sizes, sizes);
	t->len = at + len;
	t->head.count++;
}

static void each_of_function(struct frame_record *t, uintptr_t frame, uintptr_t names)
{
	uintptr_t name[VARIABLES_MOST], value[VARIABLES_MOST];
	uint64_t count, at = items_of(t->o, names, &count);

	count = count < VARIABLES_MOST ? count : VARIABLES_MOST;
	if (!at || !file_peek(name, at, count * 8) ||
	    !file_peek(value, frame + (uintptr_t)t->o->frame_variables, count * 8))
		return;
	for (uint64_t i = 0; i < count; i++)
		record_variable(t, name[i], value[i]);
}

static bool is_module(const struct python_offsets *o, uintptr_t code)
{
	uint8_t name[CODE_TEXT_MAX];
	uint32_t len = copy_name(o, file_peek_word(code + (uintptr_t)o->code_name), name);

	return len == 8 && !memcmp(name, "<module>", 8);
}

void variables_record(struct thread *t, const struct python_frame *f, uint32_t node, bool lists,
		      uint8_t *buf)
{
	struct frame_record r = {
		.o = python_layout(),
		.read = __atomic_load_n(&reader, __ATOMIC_ACQUIRE),
		.lists = lists,
		.head = { .seq = session_last_seq(), .node = node, .flags = lists },
		.buf = buf,
		.len = sizeof(r.head),
	};
	uintptr_t frame = f->at & ~(uintptr_t)1, code = f->code->code;
	struct gmt_def d = { .kind = GMT_DEF_VARIABLES, .payload = buf };

	if (!r.read || !file_peeks_often())
		return;
	if (is_module(r.o, code))
		dict_each(r.o, file_peek_word(frame + (uintptr_t)r.o->frame_globals), GLOBALS_MOST,
			  record_variable, &r);
	else
		each_of_function(&r, frame, file_peek_word(code + (uintptr_t)r.o->code_variables));
	if (!r.head.count)
		return;
	memcpy(buf, &r.head, sizeof(r.head));
	d.len = r.len;
	d.id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	thread_push_def(t, &d);
}
