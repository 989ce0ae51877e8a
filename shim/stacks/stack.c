/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes nodes of the stack tree of native and Python frames. A thread's stacks differ mostly at
 * their inner end, so each is compared with the one before from the outermost frame on, by value,
 * and only new frames are looked up. Application threads, any lock held; never blocks or allocates.
 */
#include "stack.h"

#include "code.h"
#include "../../format/record.h"
#include "../base/config.h"
#include "../base/forkgate.h"
#include "intern_stack.h"
#include "modules.h"
#include "native.h"
#include "frame_variables.h"

#include <string.h>

/* Frames and their nodes are outermost first, so that an unchanged outer part keeps its places. */
struct native_part {
	struct frames frames;
	uintptr_t addresses[FRAMES_MOST]; /* by libunwind */
	struct walk other;
};

struct python_part {
	struct python_chain chain;
	uint32_t nodes[PYTHON_MOST];
	uint8_t definition[GMT_DEF_MAX];
};

/* A cache of the nodes of the thread's last stacks, because the table of all nodes is large. */
struct known_python {
	uint64_t code, check;
	uint32_t where, parent, node;
};

struct known_join {
	uint32_t native;
	struct joined joined;
	uint32_t pad;
};

#define KNOWN 2048u /* in pairs, of which the first was used last */

struct stack_scratch {
	struct native_part native;
	struct python_part python;
	struct known_python pythons[KNOWN] OS_LINE;
	struct known_join joins[KNOWN] OS_LINE;
};

static unsigned known_at(uint64_t a, uint64_t b)
{
	_Static_assert(KNOWN == 2u << 10, "ten bits of the hash");
	return (unsigned)((a * 0x9e3779b97f4a7c15ULL + b) * 0xd6e8feb86659fd93ULL >> 54) * 2;
}

/* Mapped at the thread's first stack; NULL: no memory (that thread has no stacks then). */
static struct stack_scratch *scratch_of(struct thread *t)
{
	if (OS_UNLIKELY(!t->scratch_bytes)) {
		t->scratch = os_map(sizeof(struct stack_scratch));
		t->scratch_bytes = sizeof(struct stack_scratch);
	}
	return t->scratch;
}

/* A walk by libunwind, compared with its own last one by value. */
static struct walk *by_libunwind(struct native_part *p, uint16_t *flags)
{
	struct walk *w = &p->other;
	int skip, n = native_by_libunwind(p->addresses, FRAMES_MOST, &skip), same = 0;
	const uintptr_t *innermost = p->addresses + skip;
	sigset_t mask;

	if (n + skip == FRAMES_MOST)
		*flags |= GMT_FLAG_TRUNCATED;
	while (same < n && same < w->count && innermost[n - 1 - same] == w->frames[same].ip)
		same++;
	w->kept = same;
	w->count = n;
	forkgate_enter(&mask);
	for (int i = same; i < n; i++) {
		w->frames[i].ip = innermost[n - 1 - i];
		modules_know(w->frames[i].ip);
	}
	forkgate_leave(&mask);
	return w;
}

static uint32_t native_chain(struct thread *t, struct native_part *p, uint16_t *flags,
			     struct joined **joined)
{
	struct walk *w = native_by_frames(&p->frames, &t->binding, t->hook);

	if (OS_UNLIKELY(!w))
		w = by_libunwind(p, flags);
	*joined = w->joined;
	if (OS_LIKELY(w->node != 0))
		return w->node;
	for (int i = w->kept; i < w->count; i++) {
		uint32_t parent = i ? w->nodes[i - 1] : 0;

		w->nodes[i] = stack_node(t, parent, GMT_FRAME_NATIVE, w->frames[i].ip);
		if (!w->nodes[i]) {
			w->count = i;
			*flags |= GMT_FLAG_TRUNCATED;
		}
	}
	return w->count ? w->nodes[w->count - 1] : 0;
}

static bool is_node(const struct known_python *k, uint32_t parent, const struct python_frame *f)
{
	return k->code == f->code->code && k->check == f->code->check && k->where == f->where &&
	       k->parent == parent && k->node;
}

static uint32_t python_node(struct thread *t, struct stack_scratch *s, uint32_t parent,
			    const struct python_frame *f)
{
	struct known_python *k = &s->pythons[known_at(f->code->code ^ f->code->check << 20,
						      (uint64_t)parent << 32 | f->where)];
	struct known_python other;
	uint32_t code;

	if (OS_LIKELY(is_node(k, parent, f)))
		return k->node;
	other = k[1];
	k[1] = k[0];
	k[0] = other;
	if (is_node(k, parent, f))
		return k->node;
	k->node = 0;
	code = code_id(t, f->code, s->python.definition);
	if (!code)
		return 0;
	*k = (struct known_python){ f->code->code, f->code->check, f->where, parent, 0 };
	k->node = stack_node(t, parent, GMT_FRAME_PYTHON, (uint64_t)code << 32 | f->where);
	return k->node;
}

static struct joined *joined_in_table(struct thread *t, struct stack_scratch *s, uint32_t native,
				      uint32_t python)
{
	struct known_join *k = &s->joins[known_at(native, python)], other;

	if (k->native == native && k->joined.python == python)
		return &k->joined;
	other = k[1];
	k[1] = k[0];
	k[0] = other;
	if (k->native != native || k->joined.python != python)
		*k = (struct known_join){
			native,
			{ python, stack_node(t, native, GMT_FRAME_JOIN, python) },
			0,
		};
	return &k->joined;
}

/* near: the last join of the native stack, or NULL. */
static uint32_t join_node(struct thread *t, struct stack_scratch *s, struct joined *near,
			  uint32_t native, uint32_t python)
{
	const struct joined *j;

	if (near && near->python == python)
		return near->node;
	j = joined_in_table(t, s, native, python);
	if (near)
		*near = *j;
	return j->node;
}

static uint32_t python_chain(struct thread *t, struct stack_scratch *s, uint16_t *flags)
{
	struct python_part *p = &s->python;
	struct python_chain *c = &p->chain;
	int n = python_walk(c, &t->binding);

	if (n < 0)
		*flags |= GMT_FLAG_NO_PYTHON;
	if (n == PYTHON_MOST)
		*flags |= GMT_FLAG_TRUNCATED;
	for (int i = c->kept; i < n; i++) {
		p->nodes[i] = python_node(t, s, i ? p->nodes[i - 1] : 0, &c->frames[i]);
		if (!p->nodes[i]) {
			c->count = 0;
			*flags |= GMT_FLAG_TRUNCATED;
			return i ? p->nodes[i - 1] : 0;
		}
	}
	return n > 0 ? p->nodes[n - 1] : 0;
}

uint32_t stack_capture(struct thread *t, bool prefer_python, uint16_t *flags)
{
	struct stack_scratch *s = scratch_of(t);
	uint32_t native = 0, python = 0, node;
	struct joined *joined = NULL;

	if (!s)
		return 0;
	if (gmt_config.stacks & GMT_STACKS_PYTHON)
		python = python_chain(t, s, flags);
	if (gmt_config.stacks & GMT_STACKS_NATIVE && !(prefer_python && python))
		native = native_chain(t, &s->native, flags, &joined);
	if (native && python)
		node = join_node(t, s, joined, native, python);
	else
		return native ? native : python;
	if (OS_LIKELY(node != 0))
		return node;
	*flags |=
		GMT_FLAG_TRUNCATED; /* no room for more nodes: the Python stack is the better one */
	return python;
}

void stack_variables(struct thread *t, bool all)
{
	enum { INNERMOST = 12 };
	struct stack_scratch *s = t->scratch;
	struct python_part *p = s ? &s->python : NULL;
	struct variables_seen seen = { .count = 0 };
	int n = p ? p->chain.count : 0, least = all || n < INNERMOST ? 0 : n - INNERMOST;

	if (all && !variables_of_refusal())
		return;
	for (int i = n - 1; i >= least; i--) {
		if (variables_are_new(p->nodes[i]) || all)
			variables_record(t, &p->chain.frames[i], p->nodes[i], all ? &seen : NULL,
					 p->definition);
		else if (i == n - 1)
			return;
	}
}
