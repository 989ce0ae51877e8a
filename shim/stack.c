/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native and Python chains to nodes of the stack tree. A thread's stacks differ mostly at their
 * inner end, so each is compared with the one before from the outermost frame on, by value, and
 * only what differs is looked up. Application threads, any lock held; never blocks or allocates.
 */
#include "stack.h"

#include "code.h"
#include "config.h"
#include "forkgate.h"
#include "intern_stack.h"
#include "modules.h"
#include "native.h"

#include <string.h>

#define NATIVE_MOST 512
#define PYTHON_MOST 1024

/* Frames are innermost first, as they are walked; nodes outermost first, so that an unchanged outer
 * part keeps its places. */
struct native_part {
	uintptr_t frames[2][NATIVE_MOST];
	uint32_t nodes[NATIVE_MOST];
	uintptr_t *last;
	int last_count, turn;
};

struct python_part {
	struct python_frame frames[2][PYTHON_MOST];
	uint32_t nodes[PYTHON_MOST];
	int last_count, turn;
};

struct stack_scratch {
	struct native_part native;
	struct python_part python;
	uint8_t definition[GMT_DEF_MAX];
};

struct stack_scratch *stack_new_scratch(void)
{
	return os_map(sizeof(struct stack_scratch));
}

void stack_free_scratch(struct stack_scratch *s)
{
	os_unmap(s, sizeof(*s));
}

static uint32_t native_node(struct thread *t, uint32_t parent, uintptr_t ip)
{
	modules_know(ip);
	return stack_node(t, parent, GMT_FRAME_NATIVE, ip);
}

static uint32_t native_chain(struct thread *t, struct native_part *p, uint16_t *flags)
{
	uintptr_t *frames = p->frames[p->turn ^= 1];
	int skip, n = native_walk(frames, NATIVE_MOST, &skip), same = 0;

	if (n + skip == NATIVE_MOST)
		*flags |= GMT_FLAG_TRUNCATED;
	frames += skip;
	while (same < n && same < p->last_count &&
	       frames[n - 1 - same] == p->last[p->last_count - 1 - same])
		same++;
	p->last = frames;
	p->last_count = n;
	for (int i = same; i < n; i++) {
		p->nodes[i] = native_node(t, i ? p->nodes[i - 1] : 0, frames[n - 1 - i]);
		if (!p->nodes[i]) {
			p->last_count = 0;
			*flags |= GMT_FLAG_TRUNCATED;
			return i ? p->nodes[i - 1] : 0;
		}
	}
	return n ? p->nodes[n - 1] : 0;
}

static bool same_frame(const struct python_frame *a, const struct python_frame *b)
{
	return a->code == b->code && a->check == b->check && a->where == b->where;
}

static uint32_t python_node(struct thread *t, uint32_t parent, const struct python_frame *f)
{
	uint32_t code = code_id(t, f, t->scratch->definition);

	if (!code)
		return 0;
	return stack_node(t, parent, GMT_FRAME_PYTHON, (uint64_t)code << 32 | f->where);
}

static uint32_t python_chain(struct thread *t, struct python_part *p, uint16_t *flags)
{
	const struct python_frame *last = p->frames[p->turn];
	struct python_frame *frames = p->frames[p->turn ^= 1];
	int n = python_walk(frames, PYTHON_MOST), same = 0;

	if (n < 0)
		*flags |= GMT_FLAG_NO_PYTHON;
	if (n == PYTHON_MOST)
		*flags |= GMT_FLAG_TRUNCATED;
	while (same < n && same < p->last_count &&
	       same_frame(&frames[n - 1 - same], &last[p->last_count - 1 - same]))
		same++;
	p->last_count = n > 0 ? n : 0;
	for (int i = same; i < n; i++) {
		p->nodes[i] = python_node(t, i ? p->nodes[i - 1] : 0, &frames[n - 1 - i]);
		if (!p->nodes[i]) {
			p->last_count = 0;
			*flags |= GMT_FLAG_TRUNCATED;
			return i ? p->nodes[i - 1] : 0;
		}
	}
	return n > 0 ? p->nodes[n - 1] : 0;
}

uint32_t stack_capture(struct thread *t, uint16_t *flags)
{
	struct stack_scratch *s = t->scratch;
	uint32_t native = 0, python = 0;

	if (!s)
		return 0;
	if (gmt_config.stacks & CONFIG_STACKS_NATIVE) {
		forkgate_enter();
		native = native_chain(t, &s->native, flags);
		forkgate_leave();
	}
	if (gmt_config.stacks & CONFIG_STACKS_PYTHON)
		python = python_chain(t, &s->python, flags);
	if (native && python)
		return stack_node(t, native, GMT_FRAME_JOIN, python);
	return native ? native : python;
}
