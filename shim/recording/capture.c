/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point. Application threads, with any lock held; returns quickly, never fails, never
 * blocks. The stack is taken before the seq, so that everything that an event refers to is defined
 * before its seq exists (the drain relies on it).
 */
#include "../../format/record.h"
#include "../capture.h"

#include "../base/config.h"
#include "early.h"
#include "session.h"
#include "../stacks/stack.h"
#include "../rings/thread_room.h"
#include "../rings/thread.h"

#include <errno.h>

#define DEINITIALIZED 4 /* CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading */

/*
 * gmt_enter_at during our own work, in which all calls are ours and are not recorded. The exception
 * is a signal handler that interrupted a capture: its depth counts from where the capture began.
 */
static __attribute__((noinline)) int enter_busy(struct thread *t, uintptr_t here)
{
	if (t->busy <= THREAD_BUSY_OWN || !thread_was_left(t, here))
		return (int)(t->depth++ - (t->busy > THREAD_BUSY_OWN ? t->busy_depth : 0));
	t->outermost = here;
	t->nested = false;
	return (int)t->depth++;
}

/*
 * A hook whose real call threw or jumped away never left. Its stack address shows this: a hook that
 * really runs inside another one is deeper in the stack.
 */
int gmt_enter_at(uintptr_t here)
{
	struct thread *t = thread_self();

	if (OS_UNLIKELY(t->depth >= THREAD_DEPTH_OWN))
		return enter_busy(t, here);
	if (t->depth == 0 || here >= t->outermost) {
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
	if (begins_session(e->kind) || session_is_starting())
		return session_begin();
	if (gmt_kind_layer(e->kind) == GMT_LAYER_RANGE)
		early_keep(t, e);
	return false;
}

bool gmt_wants_cupti(void)
{
	return gmt_config.enabled && gmt_config.cupti;
}

/* How capture treats a kind. */
enum {
	TAKES_STACK = 1 << 0,
	PREFERS_PYTHON = 1 << 1, /* about a block whose allocation has the native frames */
};

static const uint8_t traits[] = {
#define EVENT(name, number, layer, text, fields, meaning)                                    \
	[number] = ((fields)&F_STACK ? TAKES_STACK : 0) |                                    \
		   (GMT_LAYER_##layer == GMT_LAYER_TAG || GMT_LAYER_##layer == GMT_LAYER_USE \
			    ? PREFERS_PYTHON                                                 \
			    : 0),
#include "../../format/records.def"
};

static inline uint32_t stack_of(struct thread *t, struct gmt_event *e)
{
	unsigned of_kind = e->kind < sizeof(traits) ? traits[e->kind] : 0;

	if (!(of_kind & TAKES_STACK) || e->flags & GMT_FLAG_MORE || session_paused())
		return 0;
	return stack_capture(t, of_kind & PREFERS_PYTHON, &e->flags);
}

/* Records the stack's variables: when it first allocates much, and when memory runs out. */
static inline void record_variables(struct thread *t, const struct gmt_event *e)
{
	enum { MUCH = 1 << 20 };
	bool refused = e->kind == GMT_BLOCK_OOM;

	if (e->stack && (refused || (e->kind == GMT_BLOCK_ALLOC && e->size >= MUCH)) &&
	    !(e->flags & GMT_FLAG_NO_PYTHON))
		stack_variables(t, refused);
}

#define HELD UINT64_MAX /* in place of a seq */

static inline void push(struct thread *t, struct gmt_event *e, bool paused)
{
	bool held = e->seq == HELD;

	e->thread = t->id;
	e->seq = session_next_seq();
	e->time_ns = session_now(paused);
	if (OS_LIKELY(!held))
		thread_push(t, e);
}

/* Captures without a stack, so that an event costs little but its clock and its slot. */
static __attribute__((noinline)) bool capture_paused(struct thread *t, struct gmt_event *e)
{
	struct thread_mark mark;
	int saved;

	if (!session_on() || !thread_is_ready(t))
		return false;
	saved = errno;
	thread_enter(t, &mark); /* a signal handler can come here too */
	t->busy_depth = t->depth;
	e->stack = 0;
	push(t, e, true);
	t->busy = 0;
	errno = saved;
	return true;
}

/* Captures in a signal handler that interrupted another capture, without touching its state. */
static void capture_within(struct thread *t, struct gmt_event *e)
{
	int saved = errno;

	if (!session_on() || !thread_is_ready(t) || t->pushing || t->busy == THREAD_BUSY_OWN) {
		session_count_lost();
		return;
	}
	e->stack = 0;
	push(t, e, session_paused());
	errno = saved;
}

/* Whether to capture although the thread is busy. False too if recording is off for good. */
static __attribute__((noinline)) bool may_go_on(struct thread *t, struct gmt_event *e,
						uintptr_t here)
{
	if (!gmt_recording() || !t->busy)
		return gmt_recording();
	if (thread_was_left(t, here))
		return true;
	capture_within(t, e);
	return false;
}

static inline void capture(struct thread *t, struct gmt_event *e)
{
	if (OS_UNLIKELY(!session_on()) && !begin(t, e))
		return;
	if (!thread_ready(t)) {
		session_count_lost();
		return;
	}
	e->stack = stack_of(t, e);
	record_variables(t, e);
	push(t, e, false);
}

void gmt_capture_from(struct gmt_event *e, const void *hook)
{
	struct thread *t = thread_self();
	struct thread_mark mark;
	uint32_t depth;
	int saved;

	if (OS_UNLIKELY(t->busy || !gmt_recording()) && !may_go_on(t, e, (uintptr_t)&mark))
		return;
	if (OS_UNLIKELY(session_paused()) && capture_paused(t, e))
		return;
	saved = errno;
	thread_enter(t, &mark);
	t->hook = hook;
	depth = t->depth;
	t->busy_depth = t->depth = depth + THREAD_DEPTH_OWN;
	capture(t, e);
	t->depth = depth;
	t->busy = 0;
	errno = saved;
}

void gmt_capture(struct gmt_event *e)
{
	gmt_capture_from(e, NULL);
}

void gmt_hold(struct gmt_event *e)
{
	e->seq = HELD;
	gmt_capture_from(e, NULL);
	if (e->seq == HELD)
		e->seq = 0;
}

static void refuse(struct gmt_event *e, int rc)
{
	e->arg0 = e->kind;
	e->arg1 = (uint64_t)rc;
	e->kind = GMT_REFUSED;
}

/* If the driver has shut down, the memory is free anyway, so the event is stored as done. A seq
 * whose event is not stored counts as dropped. */
void gmt_settle(struct gmt_event *e, int rc)
{
	struct thread *t = thread_self();
	struct thread_mark mark;
	uintptr_t interrupted = t->busy;
	int saved = errno;

	if (!e->seq || !session_on() || !thread_is_ready(t))
		return;
	if (interrupted && thread_was_left(t, (uintptr_t)&mark))
		interrupted = 0;
	if (interrupted && (t->pushing || interrupted == THREAD_BUSY_OWN))
		return;
	if (!interrupted)
		thread_enter(t, &mark);
	if (rc && rc != DEINITIALIZED)
		refuse(e, rc);
	thread_push(t, e);
	t->busy = interrupted;
	errno = saved;
}

struct gmt_event *gmt_held(void)
{
	struct thread_room *room = thread_room();

	return room ? &room->held : NULL;
}
