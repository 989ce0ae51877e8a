/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calling thread's frame chain by offsets, and reads only frames that differ from the
 * last walk: one at the same address with the same instruction of the same code object
 * (python_code.h) did not change. Application threads, any lock held, GIL held or not: only plain
 * loads.
 *
 * Each version with a verified layout has a walk of its own, in which offsets are constants in the
 * code; python_walk chooses by the layout that was found.
 */
#include "python_code.h"

#include <stddef.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))

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

/* The frame's instruction, in the version's own form (lasti_kind). */
static INLINE uintptr_t instruction(const struct python_offsets *o, uintptr_t frame)
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
static __attribute__((noinline)) void read_frame(const struct python_offsets *o,
						 struct python_chain *c, uintptr_t at,
						 struct python_frame *out)
{
	uintptr_t frame = at & ~(uintptr_t)1;
	uintptr_t code = load(frame + (uintptr_t)o->frame_code) & ~(uintptr_t)o->tag_mask;

	out->at = at;
	out->code = python_code_known(o, &c->known, code, c->walk);
	out->instruction = instruction(o, frame);
	out->where = lasti_bytes(o, frame, code, out->instruction) << 1 | (at & 1);
}

static INLINE bool unchanged(const struct python_offsets *o, uint64_t walk,
			     const struct python_frame *k, uintptr_t at)
{
	uintptr_t frame = at & ~(uintptr_t)1;

	return k->at == at && o->frame_tlbc < 0 &&
	       (load(frame + (uintptr_t)o->frame_code) & ~(uintptr_t)o->tag_mask) ==
		       k->code->code &&
	       instruction(o, frame) == k->instruction &&
	       (k->code->seen == walk || python_code_is(o, k->code, walk));
}

static INLINE uintptr_t first_frame(const struct python_offsets *o, uintptr_t thread)
{
	uintptr_t frame = load(thread + (uintptr_t)o->thread_frame);

	return o->cframe_frame >= 0 && frame ? load(frame + (uintptr_t)o->cframe_frame) : frame;
}

static INLINE bool is_python(const struct python_offsets *o, uintptr_t frame)
{
	return o->frame_owner < 0 || o->shim_owner == 127 ||
	       *(const int8_t *)(frame + (uintptr_t)o->frame_owner) < o->shim_owner;
}

/* Skips *frame and those outside it that are not Python code. True: there were any. */
static INLINE bool pass_over(const struct python_offsets *o, uintptr_t *frame)
{
	int n = 0;

	for (; *frame && !is_python(o, *frame) && n < PYTHON_MOST; n++)
		*frame = load(*frame + (uintptr_t)o->frame_back);
	return n != 0;
}

/* Returns *frame, in bit 0 whether it was entered from C, and sets *frame to the one outside it.
 * Before 3.11 every call enters from C. */
static INLINE uintptr_t take(const struct python_offsets *o, uintptr_t *frame)
{
	uintptr_t at = *frame, entry = o->frame_owner < 0;

	if (o->frame_entry >= 0)
		entry = *(const bool *)(at + (uintptr_t)o->frame_entry);
	*frame = load(at + (uintptr_t)o->frame_back);
	return at | (entry | pass_over(o, frame));
}

/* Index of the last walk's frame at this address, further out than i; i: there is none. */
static int same_place(const struct python_chain *c, int i, uintptr_t at)
{
	for (int j = i - 1; j >= 0; j--)
		if (c->frames[j].at == at)
			return j;
	return i;
}

/* Skips frames from *frame outward that equal the last walk's from i outward. Returns the index of
 * the first that does not (-1: all do), and *frame is that one. */
static INLINE int hold(const struct python_offsets *o, const struct python_chain *c,
		       uintptr_t *frame, int i)
{
	uintptr_t outer = *frame;

	for (; *frame && i >= 0; i--) {
		uintptr_t at = take(o, &outer);

		if (OS_UNLIKELY(!unchanged(o, c->walk, &c->frames[i], at)))
			break;
		*frame = outer;
	}
	return i;
}

/* Collects the frames that are not kept, innermost first. Returns the number of all frames; *kept:
 * number of outermost ones that did not change. */
static INLINE int collect(const struct python_offsets *o, struct python_chain *c, uintptr_t frame,
			  int *kept)
{
	int n = 0, i = c->count - 1;

	*kept = 0;
	pass_over(o, &frame);
	while (frame && n < PYTHON_MOST) {
		uintptr_t outer = frame, at = take(o, &outer);

		if (i >= 0 && c->frames[i].at != at)
			i = same_place(c, i, at);
		if (i >= 0 && c->frames[i].at == at) {
			int first = hold(o, c, &frame, i);

			if (OS_LIKELY(first < 0 && !frame && n + i < PYTHON_MOST)) {
				*kept = i + 1;
				return n + i + 1;
			}
			if (first != i) {
				for (; i > first && n < PYTHON_MOST; i--)
					c->at[n++] = c->frames[i].at;
				continue;
			}
			i--;
		}
		c->at[n++] = at;
		frame = outer;
	}
	return n;
}

static bool equal(const struct python_frame *a, const struct python_frame *b)
{
	return a->code == b->code && a->where == b->where;
}

/* An address in the C frame of the interpreter's innermost loop: that of a variable of the loop,
 * its first frame or the pointer to its last one. 0: not known. */
static INLINE uintptr_t loop_at(const struct python_offsets *o, uintptr_t thread, uintptr_t frame)
{
	if (o->cframe_frame >= 0)
		return load(thread + (uintptr_t)o->thread_frame);
	if (o->frame_owner < 0)
		return 0;
	for (int n = 0; frame && n < PYTHON_MOST && is_python(o, frame); n++)
		frame = load(frame + (uintptr_t)o->frame_back);
	return frame;
}

/* Whether the binding is between us and that loop on the stack: then it runs no Python in turn. */
static INLINE bool is_called_by(const struct python_offsets *o, uintptr_t thread,
				uintptr_t innermost, const struct binding *b)
{
	char here;

	return (uintptr_t)&here < b->at && b->at < loop_at(o, thread, innermost);
}

/*
 * Whether the last walk's innermost frame is still in the same call of a binding: then no frame has
 * changed. If the binding calls Python in turn, another frame is the innermost.
 */
static INLINE bool still_calls(const struct python_chain *c, const struct binding *b,
			       uintptr_t innermost)
{
	return b->at && b->number == c->binding && c->count &&
	       (c->frames[c->count - 1].at & ~(uintptr_t)1) == innermost;
}

/* In a library made with CHECK=1: makes the walk that was skipped, and compares. */
static INLINE void compare(const struct python_offsets *o, struct python_chain *c,
			   uintptr_t innermost)
{
#ifdef GMT_CHECK_FRAMES
	int kept, n;

	c->walk++;
	n = collect(o, c, innermost, &kept);
	python_compare(n == c->count && kept == n);
#else
	(void)o, (void)c, (void)innermost;
#endif
}

static INLINE int walk_by(const struct python_offsets *o, struct python_chain *c, uintptr_t thread,
			  const struct binding *b)
{
	uintptr_t innermost = first_frame(o, thread);
	int i, n, before;
	bool as_before = true;
	struct python_frame now;

	if (still_calls(c, b, innermost)) {
		compare(o, c, innermost);
		return c->kept = c->count;
	}
	if (OS_UNLIKELY(python_codes_begin(&c->known)))
		c->count = 0;
	c->walk++;
	before = c->count;
	n = collect(o, c, innermost, &i);
	c->count = n;
	c->binding = is_called_by(o, thread, innermost, b) ? b->number : 0;
	c->kept = i;
	for (; i < n; i++) {
		read_frame(python_layout(), c, c->at[n - 1 - i], &now);
		as_before = as_before && i < before && equal(&now, &c->frames[i]);
		c->kept += as_before;
		c->frames[i] = now;
	}
	return n;
}

#define PYTHON(...) { __VA_ARGS__, .frame_tlbc = -1, .code_tlbc = -1 },
static const struct python_offsets verified[] = {
#include "python_offsets.def"
};

#define PYTHON(minor, ...)                                                                         \
	static int walk_##minor(struct python_chain *c, uintptr_t thread, const struct binding *b) \
	{                                                                                          \
		static const struct python_offsets o = { minor, __VA_ARGS__, .frame_tlbc = -1,     \
							 .code_tlbc = -1 };                        \
                                                                                                   \
		return walk_by(&o, c, thread, b);                                                  \
	}
#include "python_offsets.def"

static int walk_any(struct python_chain *c, uintptr_t thread, const struct binding *b)
{
	return walk_by(python_layout(), c, thread, b);
}

typedef int walk_fn(struct python_chain *c, uintptr_t thread, const struct binding *b);

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

int python_walk(struct python_chain *c, const struct binding *binding)
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
	return by(c, thread, binding);
}
