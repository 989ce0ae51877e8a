/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that few threads need besides struct thread: a page of its own, mapped at first use and
 * unmapped when the thread ends. Initial-exec TLS is scarce: the loader has some 1600 bytes for all
 * libraries that are loaded late, audit libraries included (scripts/lint-tls.sh).
 */
#pragma once

#include "thread.h"

struct thread_room {
	uint64_t nvtx[130];	/* ranges that are pushed: cuda/nvtx.c */
	uint64_t reuse[66];	/* events of a block's streams: cuda/reuse.c */
	struct gmt_event aside; /* of a call inside a call: cuda/hook.c */
	struct gmt_event held;	/* between a callback before a call and the one after it */
};

_Static_assert(sizeof(struct thread_room) <= 4096, "a page");

/* NULL: there is no memory, or system calls are forbidden. */
struct thread_room *thread_take_room(struct thread *t);

/* The calling thread's, mapped at its first use. */
static inline struct thread_room *thread_room(void)
{
	struct thread *t = thread_self();

	return OS_LIKELY(t->room) ? t->room : thread_take_room(t);
}

/* NULL if it has not been used. */
static inline struct thread_room *thread_room_used(void)
{
	return thread_self()->room;
}
