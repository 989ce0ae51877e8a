/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's ring: taken at its first event, doubled up when full, given back at its end. Runs on
 * the application's threads; what cannot be kept is counted, never waited for.
 */
#include "thread.h"

#include "live.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

__thread struct thread thread_tls __attribute__((tls_model("initial-exec")));

static pthread_key_t exit_key;
static bool have_exit_key;

/* May run several times for a thread that records events while it is being taken down. */
static void give_back(void *arg)
{
	struct thread *t = arg;

	t->busy = true;
	if (t->generation == gmt_session.generation) {
		if (t->ring)
			live_give(t->ring);
		os_unmap(t->scratch, t->scratch_bytes);
	}
	t->ring = NULL;
	t->scratch = NULL;
	t->scratch_bytes = 0;
	t->generation = 0;
	t->busy = false;
}

void thread_setup(void)
{
	have_exit_key = !pthread_key_create(&exit_key, give_back);
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

	prctl(PR_GET_NAME, payload.name);
	payload.head.tid = t->tid;
	payload.head.name_len = (uint32_t)strnlen(payload.name, sizeof(payload.name));
	d.len = (uint32_t)sizeof(payload.head) + payload.head.name_len;
	thread_push_def(t, &d);
}

static bool attach_first(struct thread *t)
{
	t->ring = NULL;
	t->starved = 0;
	t->scratch = NULL;
	t->scratch_bytes = 0;
	thread_number(t);
	t->generation = gmt_session.generation;
	if (have_exit_key)
		pthread_setspecific(exit_key, t);
	t->ring = live_take(t->id);
	if (t->ring)
		define_thread(t);
	return t->ring != NULL;
}

bool thread_attach(struct thread *t)
{
	if (t->generation != gmt_session.generation)
		return attach_first(t);
	/* no ring was to be had: ask again now and then */
	if (++t->starved % 1024 == 0)
		t->ring = live_take(t->id);
	if (t->ring && t->starved)
		define_thread(t);
	return t->ring != NULL;
}

/* The full ring is left to the drain. */
static bool take_another(struct thread *t)
{
	struct gmt_ring *r = live_take(t->id);

	session_call_drain();
	if (!r)
		return false;
	live_give(t->ring);
	t->ring = r;
	return true;
}

void thread_look(struct thread *t)
{
	if (gmt_ring_used(t->ring) > live_pressed())
		session_call_drain();
}

bool thread_push_on(struct thread *t, const struct gmt_event *e)
{
	if (take_another(t) && gmt_ring_push(t->ring, e))
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
	ok = gmt_ring_push_def(t->ring, d) || (take_another(t) && gmt_ring_push_def(t->ring, d));
	thread_count_push(t);
	t->pushing = false;
	return ok;
}
