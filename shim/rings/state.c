/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the recording, for those who only look. Any thread; loads and a futex.
 */
#include "state.h"

#include "../capture.h"

struct session gmt_session = { .generation = 1 }; /* 0 = a thread that has nothing yet */

uint32_t gmt_generation(void)
{
	return __atomic_load_n(&gmt_session.generation, __ATOMIC_RELAXED);
}

bool gmt_recording(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_RELAXED) != SESSION_OFF;
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
