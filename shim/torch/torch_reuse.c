/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that other streams used (record_stream): when one is freed, PyTorch's allocator records a
 * CUDA event on each of those streams, and hands the block out again only after it has found all of
 * them done, which it asks at its next requests. Seen here: the events that the allocator itself
 * records, asks for and waits for. Application threads, with the lock of the allocator's device
 * held: no wait, no call but the real one.
 */
#include "../base/intern.h"
#include "../cuda/hook.h"
#include "torch.h"

#define PLACES 8192u /* a power of two */
#define WINDOW 32u
#define BUSY   1u
#define MOST   16u /* streams of one block that are seen */

/* What an event that is under way was recorded for. */
struct wait {
	uint64_t event; /* 0 = free, BUSY = being written */
	uint64_t addr, size, stream;
	int32_t device;
};

static struct wait waits[PLACES];

/* Recorded by this thread for the block that it is about to free. */
static __thread struct {
	uint32_t count;
	struct {
		uint64_t event, stream;
	} on[MOST];
} recorded __attribute__((tls_model("initial-exec")));

static struct wait *place(uint64_t event, uint32_t i)
{
	return &waits[(intern_mix(event) + i) & (PLACES - 1)];
}

static bool put(const struct gmt_event *e, uint64_t event)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct wait *w = place(event, i);
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&w->event, &none, BUSY, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		w->addr = e->addr;
		w->size = e->size;
		w->stream = e->stream;
		w->device = e->device;
		__atomic_store_n(&w->event, event, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* The allocator asks for an event under the lock that it recorded it under: nobody else does. */
static bool take(struct gmt_event *e, uint64_t event)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct wait *w = place(event, i);

		if (__atomic_load_n(&w->event, __ATOMIC_ACQUIRE) != event)
			continue;
		e->addr = w->addr;
		e->size = w->size;
		e->stream = w->stream;
		e->device = w->device;
		__atomic_store_n(&w->event, 0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

void torch_reuse_free(const struct gmt_event *freed)
{
	struct gmt_event e = { .kind = GMT_REUSE_WAIT,
			       .addr = freed->addr,
			       .size = freed->size,
			       .device = freed->device };

	for (uint32_t i = 0; i < recorded.count; i++) {
		e.stream = recorded.on[i].stream;
		if (put(&e, recorded.on[i].event))
			gmt_capture(&e);
	}
	recorded.count = 0;
}

void torch_reuse_alloc(void)
{
	recorded.count = 0;
}

static void note(uint64_t event, uint64_t stream)
{
	uint32_t n = recorded.count;

	if (n == MOST)
		return;
	recorded.on[n].event = event;
	recorded.on[n].stream = stream;
	recorded.count = n + 1;
}

static void done(uint64_t event)
{
	struct gmt_event e = { .kind = GMT_REUSE_READY };

	if (take(&e, event))
		gmt_capture(&e);
}

#define CALLED_BY(function)                                                                  \
	const struct caller caller = resolve_caller((uintptr_t)__builtin_return_address(0)); \
	typeof(&function) real = REAL_RUNTIME(&caller, function);                            \
	int rc = real ? 0 : CUDA_NOT_INITIALIZED

#pragma GCC visibility push(default)
int cudaEventRecord(void *event, void *stream)
{
	CALLED_BY(cudaEventRecord);

	if (rc)
		return rc;
	rc = real(event, stream);
	if (caller.framework && !rc && gmt_recording())
		note((uint64_t)event, (uint64_t)stream);
	return rc;
}

int cudaEventQuery(void *event)
{
	CALLED_BY(cudaEventQuery);

	if (rc)
		return rc;
	rc = real(event);
	if (caller.framework && !rc && gmt_recording())
		done((uint64_t)event);
	return rc;
}

int cudaEventSynchronize(void *event)
{
	CALLED_BY(cudaEventSynchronize);

	if (rc)
		return rc;
	rc = real(event);
	if (caller.framework && !rc && gmt_recording())
		done((uint64_t)event);
	return rc;
}
#pragma GCC visibility pop
