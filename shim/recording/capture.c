/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point. Application threads, with any lock held; returns quickly, never fails, never
 * blocks. The stack is taken before the number, so that all that an event refers to is defined
 * before its seq is (the drain relies on it).
 */
#include "../capture.h"

#include "../base/config.h"
#include "early.h"
#include "session.h"
#include "../stacks/stack.h"
#include "../rings/thread.h"

#include <errno.h>

/*
 * A hook whose real call threw or jumped away never left. It is found by its place: a hook that
 * really runs inside another one is deeper in the stack.
 */
int gmt_enter_at(uintptr_t here)
{
	struct thread *t = thread_self();

	if (t->depth < THREAD_DEPTH_OWN && (t->depth == 0 || here >= t->outermost)) {
		t->depth = 0;
		t->outermost = here;
		t->nested = false;
	}
	return (int)t->depth++;
}

int gmt_enter(void)
{
	return gmt_enter_at((uintptr_t)__builtin_frame_address(0));
}

void gmt_leave(void)
{
	struct thread *t = thread_self();

	if (t->depth & (THREAD_DEPTH_OWN - 1))
		t->depth--;
}

void gmt_saw_nested(void)
{
	thread_self()->nested = true;
}

bool gmt_had_nested(void)
{
	struct thread *t = thread_self();
	bool had = t->nested;

	t->nested = false;
	return had;
}

/* Only what happens on a device begins a recording: a program that never uses one leaves no file.
 */
static bool begins_session(uint16_t kind)
{
	unsigned layer = gmt_kind_layer(kind);

	return layer == GMT_LAYER_FRAMEWORK || layer == GMT_LAYER_CUDA;
}

static __attribute__((noinline)) bool begin(struct thread *t, const struct gmt_event *e)
{
	if (begins_session(e->kind))
		return session_begin();
	if (gmt_kind_layer(e->kind) == GMT_LAYER_RANGE)
		early_keep(t, e);
	return false;
}

bool gmt_wants_cupti(void)
{
	return gmt_config.enabled && gmt_config.cupti;
}

/* A bit for each kind that has a stack. */
#define EVENT(name, number, layer, text, fields, meaning) \
	| (uint64_t)(((fields)&F_STACK) != 0) << (number)
static const uint64_t with_stack = 0
#include "../../format/records.def"
	;
/* A bit for each kind of tag: it is about a block whose allocation has the native frames. */
#define EVENT(name, number, layer, text, fields, meaning) \
	| (uint64_t)(GMT_LAYER_##layer == GMT_LAYER_TAG) << (number)
static const uint64_t tags = 0
#include "../../format/records.def"
	;

static inline bool is_in(uint64_t kinds, uint16_t kind)
{
	return kind < 64 && kinds >> kind & 1;
}

static inline uint32_t stack_of(struct thread *t, struct gmt_event *e)
{
	if (!is_in(with_stack, e->kind) || session_paused())
		return 0;
	return stack_capture(t, is_in(tags, e->kind), &e->flags);
}

static inline void push(struct thread *t, struct gmt_event *e, bool paused)
{
	e->thread = t->id;
	e->seq = session_next_seq();
	e->time_ns = session_now(paused);
	thread_push(t, e);
}

/* No stack: the rest of an event's cost is its clock and its slot. */
static __attribute__((noinline)) bool capture_paused(struct thread *t, struct gmt_event *e)
{
	int saved;

	if (!session_on() || !thread_is_ready(t))
		return false;
	saved = errno;
	t->busy = true; /* a signal's handler may come here too */
	e->stack = 0;
	push(t, e, true);
	t->busy = false;
	errno = saved;
	return true;
}

static inline void capture(struct thread *t, struct gmt_event *e)
{
	if (OS_UNLIKELY(!session_on()) && !begin(t, e))
		return;
	if (!thread_ready(t)) {
		__atomic_add_fetch(&gmt_session.lost, 1, __ATOMIC_RELAXED);
		return;
	}
	e->stack = stack_of(t, e);
	push(t, e, false);
}

void gmt_capture_from(struct gmt_event *e, const void *hook)
{
	struct thread *t = thread_self();
	int saved;

	if (OS_UNLIKELY(t->busy || !gmt_recording()))
		return;
	if (OS_UNLIKELY(session_paused()) && capture_paused(t, e))
		return;
	saved = errno;
	t->busy = true;
	t->hook = hook;
	t->depth += THREAD_DEPTH_OWN;
	capture(t, e);
	t->depth -= THREAD_DEPTH_OWN;
	t->busy = false;
	errno = saved;
}

void gmt_capture(struct gmt_event *e)
{
	gmt_capture_from(e, NULL);
}
