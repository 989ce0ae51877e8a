/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of an event: CLOCK_MONOTONIC, from the processor's counter if the kernel uses it too.
 * clock_gettime waits for all pending loads before it reads the counter, and an event has many. The
 * drain updates a line from counter to time several times a second. Without a current line the
 * kernel is asked. Any thread, hook path included: loads only.
 */
#pragma once

#include "os.h"

/* `from` is the counter at time `ns`. The line is valid for `most` ticks; 0 = no line. */
struct ticks_line {
	uint64_t from, ns, most;
	uint64_t rate;	    /* nanoseconds per tick, times 2^32 */
	uint32_t changes;   /* odd while the drain changes it */
	uint32_t forbidden; /* 1 = a thread of the program may not read the counter */
} __attribute__((aligned(64)));

extern struct ticks_line ticks_line;

/* Called by the drain in each round. */
void ticks_adjust(void);
void ticks_forget(void); /* in a forked child, or to use the kernel's clock from now on */

/* Call it before a thread of the program loses the counter (PR_SET_TSC, seccomp's strict mode): a
 * read of it, also by the C library's clocks, would then end the program. */
void ticks_forbid(bool our_thread_too);
void ticks_look(void); /* the same if this thread has lost it already */

#if defined(__x86_64__)
static inline uint64_t ticks_read(void)
{
	return __builtin_ia32_rdtsc();
}
#endif

/* false = ask the kernel. */
static inline bool ticks_by_line(uint64_t *now)
{
#if defined(__x86_64__)
	const struct ticks_line *l = &ticks_line;
	uint32_t changes = __atomic_load_n(&l->changes, __ATOMIC_ACQUIRE);
	uint64_t ticks;

	if (OS_UNLIKELY(__atomic_load_n(&l->forbidden, __ATOMIC_RELAXED)))
		return false;
	ticks = ticks_read() - __atomic_load_n(&l->from, __ATOMIC_ACQUIRE);
	*now = __atomic_load_n(&l->ns, __ATOMIC_ACQUIRE) +
	       (ticks * __atomic_load_n(&l->rate, __ATOMIC_ACQUIRE) >> 32);
	if (OS_UNLIKELY(ticks >= __atomic_load_n(&l->most, __ATOMIC_ACQUIRE)))
		return false;
	return !(changes & 1) && changes == __atomic_load_n(&l->changes, __ATOMIC_RELAXED);
#else
	(void)now;
	return false;
#endif
}

static inline uint64_t ticks_now(void)
{
	uint64_t now;

	return OS_LIKELY(ticks_by_line(&now)) ? now : os_now();
}
