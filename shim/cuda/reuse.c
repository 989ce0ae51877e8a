/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that other streams used (record_stream). When one is freed, PyTorch's allocator records a
 * CUDA event on each of those streams, and hands the block out again only after all of them are
 * done, for which it queries them at its next requests. These hooks see the events that the
 * allocator records, queries and waits for. The same library also records events for autograd, from
 * another place in its code. A place is identified as the allocator's once an event from there is
 * queried, which is before the next block is handed out. Application threads, with the lock of the
 * allocator's device held: no wait, no call but the real one.
 */
#include "reuse.h"

#include "../../format/record.h"
#include "../base/intern.h"
#include "../rings/thread_room.h"
#include "hook.h"

#define PLACES 8192u /* a power of two */
#define WINDOW 32u
#define BUSY   1u
#define MOST   16u   /* most streams of one block */
#define NEAR   1024u /* most bytes of stack between the event and the report of one free */

/* A recorded event that is not done, and the freed block that waits for it. */
struct wait {
	uint64_t event; /* 0 = free, BUSY = being written */
	uint64_t addr, size, stream;
	uintptr_t from; /* the call's return address */
	int32_t device;
	bool captured; /* REUSE_WAIT was captured */
};

static struct wait waits[PLACES];
static uintptr_t allocator; /* the allocator's return address when it records, 0 = not known */

/* Events that this thread recorded since its latest block. */
struct recorded {
	uint32_t count;
	struct {
		uint64_t event, stream;
		uintptr_t from, frame;
	} on[MOST];
};

_Static_assert(sizeof(struct recorded) <= sizeof(((struct thread_room *)0)->reuse), "its room");

/* NULL: none yet. */
static struct recorded *recorded(void)
{
	struct thread_room *room = thread_room_used();

	return room ? (struct recorded *)room->reuse : NULL;
}

static struct wait *place(uint64_t event, uint32_t i)
{
	return &waits[(intern_mix(event) + i) & (PLACES - 1)];
}

/* The allocator records and queries an event under one lock, so no other thread looks for it. */
static struct wait *find_wait(uint64_t event)
{
	for (uint32_t i = 0; i < WINDOW; i++)
		if (__atomic_load_n(&place(event, i)->event, __ATOMIC_ACQUIRE) == event)
			return place(event, i);
	return NULL;
}

static struct wait *claim(uint64_t event)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct wait *w = place(event, i);
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&w->event, &none, BUSY, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return w;
	}
	return NULL;
}

static void capture(struct wait *w, unsigned kind)
{
	struct gmt_event e = { .kind = (uint16_t)kind,
			       .addr = w->addr,
			       .size = w->size,
			       .stream = w->stream,
			       .device = w->device };

	w->captured = true;
	gmt_capture(&e);
}

static void keep_wait(const struct gmt_event *freed, uint64_t event, uint64_t stream,
		      uintptr_t from)
{
	struct wait *w = find_wait(event);

	w = w ? w : claim(event);
	if (!w)
		return;
	w->addr = freed->addr;
	w->size = freed->size;
	w->device = freed->device;
	w->stream = stream;
	w->from = from;
	w->captured = false;
	if (from == __atomic_load_n(&allocator, __ATOMIC_RELAXED))
		capture(w, GMT_REUSE_WAIT);
	__atomic_store_n(&w->event, event, __ATOMIC_RELEASE);
}

void reuse_free(const struct gmt_event *freed, const void *hook)
{
	uintptr_t frame = (uintptr_t)hook;
	struct recorded *r = recorded();

	for (uint32_t i = 0; r && i < r->count; i++)
		if (frame + NEAR - r->on[i].frame < 2 * NEAR)
			keep_wait(freed, r->on[i].event, r->on[i].stream, r->on[i].from);
	reuse_alloc();
}

void reuse_alloc(void)
{
	struct recorded *r = recorded();

	if (r)
		r->count = 0;
}

static void note(uint64_t event, uint64_t stream, uintptr_t from, uintptr_t frame)
{
	struct thread_room *room = thread_room();
	struct recorded *r = room ? (struct recorded *)room->reuse : NULL;
	uint32_t n = r ? r->count : MOST;

	if (n == MOST)
		return;
	r->on[n].event = event;
	r->on[n].stream = stream;
	r->on[n].from = from;
	r->on[n].frame = frame;
	r->count = n + 1;
}

/* Once in a process: captures the waits of blocks that were freed before the place was known. */
static void learn(uintptr_t from)
{
	__atomic_store_n(&allocator, from, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < PLACES; i++)
		if (__atomic_load_n(&waits[i].event, __ATOMIC_ACQUIRE) > BUSY &&
		    waits[i].from == from && !waits[i].captured)
			capture(&waits[i], GMT_REUSE_WAIT);
}

static void asked(uint64_t event, bool done)
{
	struct wait *w = find_wait(event);

	if (!w)
		return;
	if (!__atomic_load_n(&allocator, __ATOMIC_RELAXED))
		learn(w->from);
	if (!done || !w->captured)
		return;
	capture(w, GMT_REUSE_READY);
	__atomic_store_n(&w->event, 0, __ATOMIC_RELEASE);
}

int cudaEventRecord(void *event, void *stream)
{
	const uintptr_t from = (uintptr_t)__builtin_return_address(0);
	const struct caller caller = resolve_caller(from);
	typeof(&cudaEventRecord) real = REAL_RUNTIME(&caller, cudaEventRecord);
	int rc = real ? real(event, stream) : CUDA_NOT_INITIALIZED;

	if (caller.framework && !rc && gmt_recording())
		note((uint64_t)event, (uint64_t)stream, from,
		     (uintptr_t)__builtin_frame_address(0));
	return rc;
}

/* Makes the real query or wait, and notes whether the work before the event is done. */
static int ask(const struct caller *caller, int (*real)(void *event), void *event)
{
	int rc;

	if (!real)
		return CUDA_NOT_INITIALIZED;
	rc = real(event);
	if (caller->framework && gmt_recording())
		asked((uint64_t)event, !rc);
	return rc;
}

int cudaEventQuery(void *event)
{
	const struct caller caller = resolve_caller((uintptr_t)__builtin_return_address(0));

	return ask(&caller, REAL_RUNTIME(&caller, cudaEventQuery), event);
}

int cudaEventSynchronize(void *event)
{
	const struct caller caller = resolve_caller((uintptr_t)__builtin_return_address(0));

	return ask(&caller, REAL_RUNTIME(&caller, cudaEventSynchronize), event);
}
