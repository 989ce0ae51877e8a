/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of early events. early_keep runs on application threads of programs that might never touch
 * a device: a few stores, no locks. Two writers meet in one slot only if EARLY_MOST others overtake
 * one of them; such a slot is left out.
 */
#include "early.h"

#include "../../format/record.h"

#include <string.h>

struct early {
	uint64_t number; /* 1 + position when complete; 0 while it is written */
	uint32_t tid;
	struct gmt_event event;
};

static struct early kept[EARLY_MOST];
static uint64_t count;

void early_keep(struct thread *t, const struct gmt_event *e)
{
	uint64_t n = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	struct early *slot = &kept[n % EARLY_MOST];

	__atomic_exchange_n(&slot->number, 0, __ATOMIC_ACQ_REL);

	slot->event = *e;
	slot->event.thread = thread_number(t);
	slot->event.time_ns = os_now();
	slot->tid = t->tid;
	__atomic_store_n(&slot->number, n + 1, __ATOMIC_RELEASE);
}

/* Defines the thread of an early event, without its name, which it adds if it records itself. */
static void define(struct thread *t, const struct early *from)
{
	struct gmt_def_thread payload = { .tid = from->tid };
	struct gmt_def d = {
		.kind = GMT_DEF_THREAD,
		.id = from->event.thread,
		.len = sizeof(payload),
		.payload = &payload,
	};

	if (from->event.thread != t->id)
		thread_push_def(t, &d);
}

void early_replay(struct thread *t)
{
	uint64_t end = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	uint64_t n = end > EARLY_MOST ? end - EARLY_MOST : 0;
	uint32_t defined = 0;

	for (; n < end && thread_ready(t); n++) {
		struct early *slot = &kept[n % EARLY_MOST];
		struct gmt_event e;

		if (__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) != n + 1)
			continue;
		e = slot->event;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&slot->number, __ATOMIC_RELAXED) != n + 1)
			continue; /* overwritten while it was read */
		if (e.thread != defined)
			define(t, slot);
		defined = e.thread;
		e.seq = session_next_seq();
		thread_push(t, &e);
	}
}

void early_forget(void)
{
	if (count)
		memset(kept, 0, sizeof(kept));
	count = 0;
}
