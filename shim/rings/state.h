/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the process: idle until the first event, then on, ending at the end, and off if the
 * recording cannot be written. A forked child starts over with a new generation. session.h changes
 * the state; all other code reads it here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../base/ticks.h"

enum session_state {
	SESSION_OFF = 0,    /* also before the constructor */
	SESSION_ENDING = 1, /* it was on; the rest is being written, or is in the file */
	SESSION_IDLE = 2,
	SESSION_STARTING = 3,
	SESSION_ON = 4,
};

#define SESSION_PAUSE_ASKED 0x80000000u /* by `gpumemtrace ctl` */

struct session {
	uint32_t state;
	uint32_t generation;
	uint32_t pid;	   /* the process that all this belongs to */
	uint32_t opened;   /* 1: the files are there */
	uint64_t began_ns; /* when the recording began */
	/* A page that the kernel empties in a child (MADV_WIPEONFORK): not 1 = this process was
	 * forked without pthread_atfork's handlers. */
	uint32_t *marker;
	/* Not 0: no stacks are taken. The program's own pauses, and SESSION_PAUSE_ASKED. */
	uint32_t paused;
	uint64_t paused_ns; /* when the latest pause began */
	uint64_t seq __attribute__((aligned(64)));
	uint64_t lost; /* events of threads that have no ring */
	uint32_t last_thread;
	uint32_t called __attribute__((aligned(64))); /* 1: the drain is wanted */
} __attribute__((aligned(64)));

extern struct session gmt_session;

static inline bool session_on(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE) == SESSION_ON &&
	       OS_LIKELY(*gmt_session.marker == 1);
}

static inline bool session_paused(void)
{
	return __atomic_load_n(&gmt_session.paused, __ATOMIC_RELAXED);
}

/* The time of an event. While paused it is the kernel's last tick, a few milliseconds old at most,
 * which costs a quarter; but never a time before the pause. */
static inline uint64_t session_now(bool paused)
{
	uint64_t now, began;

	if (OS_LIKELY(!paused))
		return ticks_now();
	now = os_tick();
	began = __atomic_load_n(&gmt_session.paused_ns, __ATOMIC_RELAXED);
	return now > began ? now : began;
}

void session_set_state(uint32_t state);

static inline uint64_t session_last_seq(void)
{
	return __atomic_load_n(&gmt_session.seq, __ATOMIC_RELAXED);
}

static inline uint64_t session_next_seq(void)
{
	return __atomic_add_fetch(&gmt_session.seq, 1, __ATOMIC_SEQ_CST);
}

/* The program's own pauses are counted: each needs its resume; an extra resume changes nothing. */
void session_pause(void);
void session_resume(void);
/* Sets or ends the pause by `gpumemtrace ctl`. True: this changed it. */
bool session_pause_asked(bool paused);

/* Waits for the files, because a kill would lose events recorded before they are open; but at most
 * for the recording's first second, because a slow disk must not stop the program. */
void session_await_files(void);
void session_count_lost(void); /* an event without seq and ring */

/* A ring is filling up, or there is something else to write. Any thread, hook path. */
void session_call_drain(void);
void session_await_call(uint64_t most_ns); /* the drain, between two rounds */
