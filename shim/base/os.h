/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the operating system for the shim: memory, time, files, safe reads of its own memory.
 * Any thread, hook path included: no malloc, no stdio, no locks; callers save errno.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define OS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define OS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OS_LINE	       __attribute__((aligned(64))) /* begins a cache line */

/* Groups of our own system calls, any of which a program's filter may forbid (confine.c). */
enum os_ability {
	OS_FILES = 1,
	OS_WRITE = 2,
	OS_MEMORY = 4,
	OS_FUTEX = 8,
	OS_SIGNALS = 16,
	OS_PENDING = 32,
	OS_PEEK = 64,
	OS_THREADS = 128,
	OS_ID = 256,
	OS_ALL = 511,
	OS_COUNTER = 512, /* the processor's counter, which the C library's clocks read too */
};
bool os_may(uint32_t abilities); /* this thread may use all of these */
void os_forbid(uint32_t abilities, bool our_thread_too);
void os_is_our_thread(void);

void *os_map(size_t bytes); /* zeroed memory that costs nothing until touched; NULL if refused */
void os_unmap(void *memory, size_t bytes);
uint64_t os_mapped(void); /* bytes that are mapped by os_map now */
uint32_t os_tid(void);
bool os_thread_is_here(uint32_t tid); /* is it a thread of this process? */
bool os_write_zeros(int fd, off_t offset, size_t bytes);

/* False if a file of this size exceeds RLIMIT_FSIZE: such a write kills the process by SIGXFSZ. */
bool os_may_grow_to(uint64_t size);

/* Blocks all signals but those of instructions: the kernel ends a program that blocks these. */
void os_block_signals(sigset_t *before);
void os_unblock_signals(const sigset_t *before);

/* Between the two this thread handles no signal and is not cancelled. SIGXFSZ and SIGPIPE from our
 * own writes are discarded. Can be nested. errno stays. */
struct os_calm {
	sigset_t mask, pending;
	int cancel;
};
void os_calm_begin(struct os_calm *c);
void os_calm_end(const struct os_calm *c);

void os_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void os_futex_wake(uint32_t *word);

/* CLOCK_MONOTONIC in ns; if the counter must not be read, as of the last tick. No system call. */
static inline uint64_t os_now(void)
{
	struct timespec ts;

	clock_gettime(OS_LIKELY(os_may(OS_COUNTER)) ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE,
		      &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Any clock, by a system call if the counter must not be read. Not for confined threads. */
void os_clock(clockid_t clock, struct timespec *now);

/* The same clock at the kernel's last tick. */
static inline uint64_t os_tick(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void os_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}
