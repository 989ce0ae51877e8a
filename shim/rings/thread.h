/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our data of a thread of the application: its number, its ring, room for its last stacks. All but
 * the small struct in initial-exec TLS is taken at its first events and released at its end.
 */
#pragma once

#include "../../format/ring.h"
#include "../base/binding.h"
#include "../capture.h"
#include "state.h"

/* The running backward node. An exception does not reset it: it runs only for stack addresses
 * inside `frame`. */
struct running_node {
	uint32_t name, ordinal;
	uintptr_t frame;
};

struct thread {
	uint32_t generation; /* of the session that ring and scratch belong to */
	uint32_t id;
	uint32_t id_generation; /* of the session that id belongs to */
	uint32_t tid;
	struct gmt_ring *ring;
	void *scratch; /* room for the last stacks; NULL before the first */
	size_t scratch_bytes;
	struct thread_room *room; /* thread_room.h; NULL = not used */
	const void *hook;	  /* frame of the hook whose event is captured; NULL = not known */
	uintptr_t outermost;	  /* stack address of the outermost hook */
	uint32_t depth;		  /* hooks that are running */
	uint32_t pushes;
	uint32_t starved;	/* events since the last failed request for a ring */
	uint64_t full_at;	/* 1 + head of the ring when there was no other */
	struct binding binding; /* PyTorch's running one */
	struct running_node node;
	uintptr_t busy;	     /* not 0 in our own work: address of its struct thread_mark */
	uint32_t busy_depth; /* depth in it */
	bool nested;	     /* a hook ran inside the outermost one */
	bool pushing;	     /* writes to the ring: a signal handler must not */
} OS_LINE;

#define THREAD_DEPTH_OWN ((uint32_t)GMT_DEPTH_OWN) /* added to depth during our own work */
#define THREAD_BUSY_OWN	 1u /* busy with work that nothing jumps out of: our thread, sources */

/* Lies in the frame of our own work and holds its own address, as long as the frame is there. */
struct thread_mark {
	uintptr_t self;
};

extern __thread struct thread thread_tls __attribute__((tls_model("initial-exec")));

static inline struct thread *thread_self(void)
{
	struct thread *t = &thread_tls;

#ifdef __SANITIZE_ADDRESS__
	/* Where a program is linked whole, as unit tests are, the linker turns the addition that
	 * gives t into one that sets no flags, and a sanitizer's check for NULL may go by them. */
	__asm__("" : "+r"(t));
#endif
	return t;
}

void thread_setup(void); /* once, in the constructor */

/* Fills name and scope with the backward node that runs at `here`, a stack address (0, 0 = none).
 */
static inline void thread_node_now(const struct thread *t, uintptr_t here, struct gmt_event *e)
{
	if (here >= t->node.frame)
		return;
	e->name = t->node.name;
	e->scope = t->node.ordinal;
}

static inline void thread_enter(struct thread *t, struct thread_mark *m)
{
	m->self = (uintptr_t)m;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->busy = (uintptr_t)m;
}

/* For a busy thread. True: a jump (siglongjmp of a handler) left our work, and the state is
 * repaired. False: a handler interrupted it; `here` is a stack address of the handler's. */
bool thread_was_left(struct thread *t, uintptr_t here);

uint32_t thread_number(struct thread *t); /* id, also before the thread has anything else */

/* true = the thread has a number and a ring. */
bool thread_attach(struct thread *t);

static inline bool thread_is_ready(const struct thread *t)
{
	return OS_LIKELY(t->ring && t->generation == gmt_session.generation);
}

static inline bool thread_ready(struct thread *t)
{
	if (thread_is_ready(t))
		return true;
	return thread_attach(t);
}

/* Calls the drain if the ring is filling up. */
void thread_look(struct thread *t);
bool thread_push_on(struct thread *t, const struct gmt_event *e); /* if the ring is full */

static inline void thread_count_push(struct thread *t)
{
	if (OS_UNLIKELY(++t->pushes % 256 == 0))
		thread_look(t);
}

/* Puts it into the thread's ring, or another if that is full; not while pushing. False: dropped. */
static inline bool thread_push(struct thread *t, const struct gmt_event *e)
{
	bool ok;

	t->pushing = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ok = OS_LIKELY(gmt_ring_push(t->ring, e)) || thread_push_on(t, e);
	thread_count_push(t);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->pushing = false;
	return ok;
}

bool thread_push_def(struct thread *t, const struct gmt_def *d);
