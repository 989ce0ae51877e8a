/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calling thread's frame chain by offsets, and reads only what differs from the walk
 * before: a frame in the same place with the same instruction of the same code object is the same.
 * Application threads, any lock held, GIL held or not: plain loads only.
 *
 * Each version with a verified layout has a walk of its own, in which offsets are numbers of the
 * code; python_walk chooses by the layout that was found.
 */
#include "python.h"

#include "../base/intern.h"
#include "../base/os.h"

#include <stddef.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE uintptr_t load(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

INLINE uint32_t load32(uintptr_t address)
{
	return *(const uint32_t *)address;
}

/* Names in static memory may have none. */
static __attribute__((noinline)) uint64_t name_hash(const struct python_offsets *o, uintptr_t name)
{
	uint64_t hash = load(name + (uintptr_t)o->str_hash), len;

	if (hash != UINT64_MAX)
		return hash;
	len = load(name + (uintptr_t)o->str_length);
	return intern_hash_bytes((const void *)(name + (uintptr_t)o->str_ascii),
				 len < 64 ? len : 64);
}

/* 3.12 on numbers every code object; before, what two code objects at one address do not share. */
static void read_code(const struct python_offsets *o, struct python_frame *out)
{
	uint64_t h;

	out->version = o->code_version >= 0 ? load32(out->code + (uintptr_t)o->code_version) : 0;
	out->first_line = load32(out->code + (uintptr_t)o->code_first_line);
	out->name = load(out->code + (uintptr_t)o->code_name);
	out->file = load(out->code + (uintptr_t)o->code_file);
	out->table = load(out->code + (uintptr_t)o->code_table);
	out->check = out->version;
	if (out->version)
		return;
	out->name_hash = name_hash(o, out->name);
	h = out->name_hash ^ out->first_line;
	h = h * 0xd6e8feb86659fd93ULL + out->name;
	h = (h ^ h >> 29) * 0xd6e8feb86659fd93ULL + out->file;
	h = (h ^ h >> 29) * 0xd6e8feb86659fd93ULL + out->table;
	out->check = h | 1ULL << 63; /* never a version */
}

static uintptr_t code_begin(const struct python_offsets *o, uintptr_t frame, uintptr_t code)
{
	uintptr_t copies;
	int32_t index;

	if (OS_LIKELY(o->frame_tlbc < 0))
		return code + (uintptr_t)o->code_start;
	copies = load(code + (uintptr_t)o->code_tlbc);
	index = *(const int32_t *)(frame + (uintptr_t)o->frame_tlbc);
	if (!copies || index < 0 || (uintptr_t)index >= load(copies))
		return code + (uintptr_t)o->code_start;
	return load(copies + 8 + 8 * (uintptr_t)index);
}

/* The instruction as the frame has it. */
INLINE uintptr_t instruction(const struct python_offsets *o, uintptr_t frame)
{
	uintptr_t at = frame + (uintptr_t)o->frame_lasti;

	return o->lasti_kind == PYTHON_LASTI_POINTER ? load(at) : load32(at);
}

static uint32_t lasti_bytes(const struct python_offsets *o, uintptr_t frame, uintptr_t code,
			    uintptr_t instruction)
{
	int64_t lasti;

	if (o->lasti_kind == PYTHON_LASTI_POINTER)
		lasti = (int64_t)(instruction - code_begin(o, frame, code));
	else
		lasti = (int32_t)instruction * (int64_t)o->lasti_kind;
	return lasti < 0 || lasti > 0x3fffffff ? 0 : (uint32_t)lasti; /* < 0: not started yet */
}

/* at: the frame, and in bit 0 whether it was entered from C. */
static __attribute__((noinline)) void read_frame(const struct python_offsets *o, uintptr_t at,
						 struct python_frame *out)
{
	uintptr_t frame = at & ~(uintptr_t)1;

	out->at = at;
	out->code = load(frame + (uintptr_t)o->frame_code) & ~(uintptr_t)o->tag_mask;
	out->instruction = instruction(o, frame);
	out->where = lasti_bytes(o, frame, out->code, out->instruction) << 1 | (at & 1);
	read_code(o, out);
}

/* Its code object is alive: the frame that was just found has it. */
INLINE bool same_code(const struct python_offsets *o, const struct python_frame *k)
{
	if (o->code_version >= 0 && k->version)
		return load32(k->code + (uintptr_t)o->code_version) == k->version;
	return load(k->code + (uintptr_t)o->code_name) == k->name &&
	       load(k->code + (uintptr_t)o->code_file) == k->file &&
	       load(k->code + (uintptr_t)o->code_table) == k->table &&
	       load32(k->code + (uintptr_t)o->code_first_line) == k->first_line &&
	       (OS_LIKELY(load(k->name + (uintptr_t)o->str_hash) == k->name_hash) ||
		name_hash(o, k->name) == k->name_hash);
}

INLINE bool unchanged(const struct python_offsets *o, const struct python_frame *k, uintptr_t at)
{
	uintptr_t frame = at & ~(uintptr_t)1;

	return k->at == at && o->frame_tlbc < 0 &&
	       (load(frame + (uintptr_t)o->frame_code) & ~(uintptr_t)o->tag_mask) == k->code &&
	       instruction(o, frame) == k->instruction && same_code(o, k);
}

static bool equal(const struct python_frame *a, const struct python_frame *b)
{
	return a->code == b->code && a->check == b->check && a->where == b->where;
}

INLINE uintptr_t first_frame(const struct python_offsets *o, uintptr_t thread)
{
	uintptr_t frame = load(thread + (uintptr_t)o->thread_frame);

	return o->cframe_frame >= 0 && frame ? load(frame + (uintptr_t)o->cframe_frame) : frame;
}

INLINE bool is_python(const struct python_offsets *o, uintptr_t frame)
{
	return o->frame_owner < 0 || o->shim_owner == 127 ||
	       *(const int8_t *)(frame + (uintptr_t)o->frame_owner) < o->shim_owner;
}

/* *frame and those outside it that are not Python code; whether there were any. */
INLINE bool pass_over(const struct python_offsets *o, uintptr_t *frame)
{
	int n = 0;

	for (; *frame && !is_python(o, *frame) && n < PYTHON_MOST; n++)
		*frame = load(*frame + (uintptr_t)o->frame_back);
	return n != 0;
}

/* The frame, and in bit 0 whether it was entered from C; then *frame is the one outside it. Before
 * 3.11 every call enters from C. */
INLINE uintptr_t take(const struct python_offsets *o, uintptr_t *frame)
{
	uintptr_t at = *frame, entry = o->frame_owner < 0;

	if (o->frame_entry >= 0)
		entry = *(const uint8_t *)(at + (uintptr_t)o->frame_entry) != 0;
	*frame = load(at + (uintptr_t)o->frame_back);
	return at | (entry | pass_over(o, frame));
}

/* Where the last walk had a frame in this place, further out than i; i: nowhere. */
static int same_place(const struct python_chain *c, int i, uintptr_t at)
{
	for (int j = i - 1; j >= 0; j--)
		if (c->frames[j].at == at)
			return j;
	return i;
}

/* Collects the frames, innermost first, beside those of the last walk. *kept: so many outermost
 * ones are unchanged. */
INLINE int collect(const struct python_offsets *o, struct python_chain *c, uintptr_t frame,
		   int *kept)
{
	int n = 0, i = c->count - 1, good = 0;

	pass_over(o, &frame);
	while (frame && n < PYTHON_MOST) {
		uintptr_t at = c->at[n++] = take(o, &frame);

		if (OS_UNLIKELY(i >= 0 && c->frames[i].at != at)) {
			good = 0;
			i = same_place(c, i, at);
		}
		if (OS_LIKELY(i >= 0 && unchanged(o, &c->frames[i], at))) {
			good++;
			i--;
		} else {
			good = 0;
			i -= i >= 0 && c->frames[i].at == at;
		}
	}
	*kept = i < 0 ? good : 0;
	return n;
}

INLINE int walk_by(const struct python_offsets *o, struct python_chain *c, uintptr_t thread)
{
	int i, n = collect(o, c, first_frame(o, thread), &i);
	struct python_frame now;

	while (i < n && i < c->count) {
		if (!unchanged(o, &c->frames[i], c->at[n - 1 - i])) {
			read_frame(python_layout(), c->at[n - 1 - i], &now);
			if (!equal(&now, &c->frames[i]))
				break;
			c->frames[i] = now;
		}
		i++;
	}
	c->count = n;
	c->kept = i;
	for (; i < n; i++)
		read_frame(python_layout(), c->at[n - 1 - i], &c->frames[i]);
	return n;
}

#define PYTHON(...) { __VA_ARGS__, .frame_tlbc = -1, .code_tlbc = -1 },
static const struct python_offsets verified[] = {
#include "python_offsets.def"
};

#define PYTHON(minor, ...)                                                              \
	static int walk_##minor(struct python_chain *c, uintptr_t thread)               \
	{                                                                               \
		const struct python_offsets o = { minor, __VA_ARGS__, .frame_tlbc = -1, \
						  .code_tlbc = -1 };                    \
                                                                                        \
		return walk_by(&o, c, thread);                                          \
	}
#include "python_offsets.def"

static int walk_any(struct python_chain *c, uintptr_t thread)
{
	return walk_by(python_layout(), c, thread);
}

typedef int walk_fn(struct python_chain *c, uintptr_t thread);

static walk_fn *const walks[] = {
#define PYTHON(minor, ...) walk_##minor,
#include "python_offsets.def"
};

static walk_fn *choose(void)
{
	for (unsigned i = 0; i < sizeof(verified) / sizeof(verified[0]); i++)
		if (!memcmp(python_layout(), &verified[i],
			    offsetof(struct python_offsets, kind_shift)))
			return walks[i];
	return walk_any;
}

int python_walk(struct python_chain *c)
{
	static walk_fn *walk;
	walk_fn *by = __atomic_load_n(&walk, __ATOMIC_RELAXED);
	uintptr_t thread = python_thread();

	c->kept = 0;
	if (!thread) {
		c->count = 0;
		return -1;
	}
	if (OS_UNLIKELY(!by)) {
		by = choose();
		__atomic_store_n(&walk, by, __ATOMIC_RELAXED);
	}
	return by(c, thread);
}
