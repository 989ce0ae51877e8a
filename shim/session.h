/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of one process: idle until the first event, then on, at the end (or when it cannot
 * be written) off. A forked child starts over with a new generation.
 */
#ifndef GMT_SESSION_H
#define GMT_SESSION_H

#include "capture.h"
#include "os.h"

enum session_state {
	SESSION_OFF = 0, /* also before the constructor */
	SESSION_IDLE = 1,
	SESSION_STARTING = 2,
	SESSION_ON = 3,
};

struct session {
	uint32_t state;
	uint32_t generation;
	/* A page that the kernel empties in a child (MADV_WIPEONFORK): not 1 = we are a fork that
	 * went past pthread_atfork. */
	uint32_t *marker;
	uint64_t seq __attribute__((aligned(64)));
	uint64_t lost; /* events of threads that have no ring */
	uint32_t last_thread;
} __attribute__((aligned(64)));

extern struct session gmt_session;

static inline bool session_on(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE) == SESSION_ON &&
	       OS_LIKELY(*gmt_session.marker == 1);
}

static inline uint64_t session_next_seq(void)
{
	return __atomic_add_fetch(&gmt_session.seq, 1, __ATOMIC_SEQ_CST);
}

/* Starts the session, or waits a moment for the thread that is starting it. true = it is on. */
bool session_begin(void);

/* The process ends: everything into the file, then off. */
void session_end(void);

/* In a forked child: all that belongs to the parent is forgotten. `at_once`: nothing but the fork
 * has happened in the child, so that file descriptors still are what they were. */
void session_fork_child(bool at_once);

#endif
