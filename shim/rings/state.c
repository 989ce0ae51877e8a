/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the recording, for code that only reads it. Any thread; loads and a futex.
 */
#include "state.h"

#include "../capture.h"

#define FILES_WAIT_NS 1000000000ull /* a kill before the files exist loses what was recorded */

struct session gmt_session = { .generation = 1 }; /* 0 = a thread that has nothing yet */

uint32_t gmt_generation(void)
{
	return __atomic_load_n(&gmt_session.generation, __ATOMIC_RELAXED);
}

bool gmt_recording(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_RELAXED) > SESSION_ENDING;
}

void session_set_state(uint32_t state)
{
	__atomic_store_n(&gmt_session.state, state, __ATOMIC_SEQ_CST);
	os_futex_wake(&gmt_session.state);
}

static void note_pause(void)
{
	__atomic_store_n(&gmt_session.paused_ns, os_now(), __ATOMIC_RELAXED);
}

void session_pause(void)
{
	note_pause();
	__atomic_fetch_add(&gmt_session.paused, 1, __ATOMIC_RELEASE);
}

void session_resume(void)
{
	uint32_t n = __atomic_load_n(&gmt_session.paused, __ATOMIC_RELAXED);

	while (n & ~SESSION_PAUSE_ASKED &&
	       !__atomic_compare_exchange_n(&gmt_session.paused, &n, n - 1, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

bool session_pause_asked(bool paused)
{
	uint32_t before;

	if (!paused)
		before = __atomic_fetch_and(&gmt_session.paused, ~SESSION_PAUSE_ASKED,
					    __ATOMIC_RELAXED);
	else
		note_pause();
	if (paused)
		before = __atomic_fetch_or(&gmt_session.paused, SESSION_PAUSE_ASKED,
					   __ATOMIC_RELEASE);
	return !(before & SESSION_PAUSE_ASKED) == paused;
}

void session_await_files(void)
{
	uint64_t passed;

	while (session_on() && !__atomic_load_n(&gmt_session.opened, __ATOMIC_ACQUIRE) &&
	       (passed = os_now() - __atomic_load_n(&gmt_session.began_ns, __ATOMIC_RELAXED)) <
		       FILES_WAIT_NS)
		os_futex_wait(&gmt_session.opened, 0, FILES_WAIT_NS - passed);
}

void session_count_lost(void)
{
	__atomic_add_fetch(&gmt_session.lost, 1, __ATOMIC_RELAXED);
}

void session_call_drain(void)
{
	if (__atomic_load_n(&gmt_session.called, __ATOMIC_RELAXED) == 0 &&
	    __atomic_exchange_n(&gmt_session.called, 1, __ATOMIC_SEQ_CST) == 0)
		os_futex_wake(&gmt_session.called);
}

void session_await_call(uint64_t most_ns)
{
	os_futex_wait(&gmt_session.called, 0, most_ns);
	__atomic_store_n(&gmt_session.called, 0, __ATOMIC_SEQ_CST);
}
