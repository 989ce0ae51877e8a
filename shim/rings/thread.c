/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's ring: taken at its first event, replaced when full, released at its end. Runs on the
 * application's threads, and waits for none of them. An event that cannot be kept is counted.
 */
#include "thread.h"

#include "live.h"
#include "thread_room.h"

#include "../../format/record.h"
#include "../base/file.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

__thread struct thread thread_tls __attribute__((tls_model("initial-exec")));

/* Bytes of a definition's payload in its first slot and in each further one: format/ring.c. */
#define FIRST_BYTES 76u
#define MORE_BYTES  80u

static pthread_key_t exit_key;
static bool have_exit_key;

/* A jump out of this is possible too, so t forgets the memory before it is unmapped. */
static void drop_scratch(struct thread *t)
{
	void *scratch = t->generation == gmt_session.generation ? t->scratch : NULL;
	size_t bytes = t->scratch_bytes;

	t->scratch_bytes = 0;
	t->scratch = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	os_unmap(scratch, bytes);
}

static void drop_room(struct thread *t)
{
	struct thread_room *room = t->room;

	t->room = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	os_unmap(room, sizeof(*room));
}

/* Can run several times for a thread that still records events at its end. */
static void give_back(void *arg)
{
	struct thread *t = arg;

	t->busy = THREAD_BUSY_OWN;
	if (t->generation == gmt_session.generation && t->ring)
		live_give(t->ring);
	t->ring = NULL;
	drop_scratch(t);
	drop_room(t);
	t->generation = 0;
	t->busy = 0;
}

void thread_setup(void)
{
	have_exit_key = !pthread_key_create(&exit_key, give_back);
}

/* A signal handler can do the same in between: then its room stays. */
struct thread_room *thread_take_room(struct thread *t)
{
	struct thread_room *room = os_map(sizeof(*room)), *none = NULL;

	if (room && !__atomic_compare_exchange_n(&t->room, &none, room, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
		os_unmap(room, sizeof(*room));
	else if (room && have_exit_key)
		pthread_setspecific(exit_key, t);
	return t->room;
}

/* ---- after a jump out of our work ---- */

static bool is_in(const stack_t *s, uintptr_t address)
{
	return address - (uintptr_t)s->ss_sp < s->ss_size;
}

/* Whether `here` is outside the frame of `mark`. Handlers can have a stack of their own, and
 * addresses can be compared only within one stack. */
static bool is_outside(uintptr_t mark, uintptr_t here)
{
	stack_t other;
	bool on, in;

	if (!os_may(OS_PEEK))
		return here >= mark;
	if (sigaltstack(NULL, &other))
		return false;
	on = other.ss_flags & SS_ONSTACK;
	in = !(other.ss_flags & SS_DISABLE) && is_in(&other, mark);
	return in != on ? in : here >= mark;
}

/* Moves the head past slots that were complete before a jump, as the drain can have read them. */
static void mend_ring(struct gmt_ring *r)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
	const struct gmt_slot *s = gmt_slot_at(r, head);
	uint32_t len = 0, slots = 1;

	if (gmt_load_acquire(&s->commit) != head + 1)
		return;
	if (s->type == GMT_SLOT_DEF)
		memcpy(&len, s->bytes, sizeof(len));
	if (len > FIRST_BYTES)
		slots += (len - FIRST_BYTES + MORE_BYTES - 1) / MORE_BYTES;
	gmt_store_release(&r->head, head + slots);
}

/* Repairs the state. The last stacks might be half written, so they are dropped. */
static void mend(struct thread *t)
{
	if (t->pushing && t->ring)
		mend_ring(t->ring);
	else
		session_count_lost(); /* an event without seq: one with a seq leaves a gap that
					 counts */
	t->pushing = false;
	t->depth = 0;
	t->busy = 0;
	drop_scratch(t);
}

bool thread_was_left(struct thread *t, uintptr_t here)
{
	struct thread_mark m = { 0 };

	if (t->busy == THREAD_BUSY_OWN)
		return false;
	if (!os_may(OS_PEEK) || !file_peek(&m, t->busy, sizeof(m)))
		m.self = t->busy;
	if (m.self == t->busy && !is_outside(t->busy, here))
		return false;
	mend(t);
	return true;
}

uint32_t thread_number(struct thread *t)
{
	if (t->id_generation != gmt_session.generation) {
		t->id = __atomic_add_fetch(&gmt_session.last_thread, 1, __ATOMIC_RELAXED);
		t->tid = os_tid();
		t->id_generation = gmt_session.generation;
	}
	return t->id;
}

static void define_thread(struct thread *t)
{
	struct {
		struct gmt_def_thread head;
		char name[16];
	} payload = { 0 };
	struct gmt_def d = { .kind = GMT_DEF_THREAD, .id = t->id, .payload = &payload };

	if (os_may(OS_THREADS))
		prctl(PR_GET_NAME, payload.name);
	payload.head.tid = t->tid;
	payload.head.name_len = (uint32_t)strnlen(payload.name, sizeof(payload.name));
	d.len = (uint32_t)sizeof(payload.head) + payload.head.name_len;
	thread_push_def(t, &d);
}

static void attach_first(struct thread *t)
{
	t->ring = NULL;
	t->starved = 0;
	t->scratch = NULL;
	t->scratch_bytes = 0;
	thread_number(t);
	t->generation = gmt_session.generation;
	if (have_exit_key)
		pthread_setspecific(exit_key, t);
	session_await_files();
}

bool thread_attach(struct thread *t)
{
	if (t->generation != gmt_session.generation)
		attach_first(t);
	/* if there is no ring: tries again every 1024 events */
	if (t->starved % 1024 == 0)
		t->ring = live_take(t->id);
	t->starved++;
	if (t->ring)
		define_thread(t);
	return t->ring != NULL;
}

/* Leaves the full ring to the drain. */
static bool take_another(struct thread *t)
{
	struct gmt_ring *full = t->ring, *r = live_take(t->id);

	session_call_drain();
	if (!r)
		return false;
	t->ring = r;
	t->full_at = 0;
	live_give(full);
	return true;
}

void thread_look(struct thread *t)
{
	if (gmt_ring_used(t->ring) > live_pressed())
		session_call_drain();
}

/* After a failure, another ring is asked for only at every 1024th event. */
static bool ask_for_another(struct thread *t)
{
	uint64_t head = 1 + __atomic_load_n(&t->ring->head, __ATOMIC_RELAXED);

	if (t->full_at == head && t->starved % 1024) {
		t->starved++;
		return false;
	}
	if (take_another(t))
		return true;
	t->full_at = head;
	t->starved = 1;
	return false;
}

bool thread_push_on(struct thread *t, const struct gmt_event *e)
{
	if (ask_for_another(t) && gmt_ring_push(t->ring, e))
		return true;
	__atomic_store_n(&t->ring->dropped, t->ring->dropped + 1, __ATOMIC_RELAXED);
	return false;
}

bool thread_push_def(struct thread *t, const struct gmt_def *d)
{
	bool ok;

	if (t->pushing || !t->ring)
		return false;
	t->pushing = true;
	ok = gmt_ring_push_def(t->ring, d) || (ask_for_another(t) && gmt_ring_push_def(t->ring, d));
	thread_count_push(t);
	t->pushing = false;
	return ok;
}
