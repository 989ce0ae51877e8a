/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim asks of the operating system: memory, time, files, safe reads of its own memory.
 * Any thread, hook path included: no malloc, no stdio, no locks; errno is the caller's to keep.
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
#define OS_LINE	       __attribute__((aligned(64))) /* begins a line of the cache */

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
	OS_COUNTER = 512, /* the processor's, which the C library's clocks read too */
};
bool os_may(uint32_t abilities); /* all of these, on this thread */
void os_forbid(uint32_t abilities, bool our_thread_too);
void os_is_our_thread(void);

void *os_map(size_t bytes); /* zeroed memory that costs nothing until touched; NULL if refused */
void os_unmap(void *memory, size_t bytes);
uint64_t os_mapped(void); /* bytes that os_map gave and os_unmap did not take back */
uint32_t os_tid(void);
bool os_thread_is_here(uint32_t tid); /* is it one of this process? */
bool os_write_zeros(int fd, off_t offset, size_t bytes);

/* A file that grows past RLIMIT_FSIZE kills by SIGXFSZ; false if `size` would. */
bool os_may_grow_to(uint64_t size);

/* But for those that an instruction raises: the kernel ends a program that blocks them. */
void os_block_signals(sigset_t *before);
void os_unblock_signals(const sigset_t *before);

/* Between the two this thread handles no signal and is not cancelled; a signal that our own writes
 * raise is taken back. May be nested. errno stays. */
struct os_calm {
	sigset_t mask, pending;
	int cancel;
};
void os_calm_begin(struct os_calm *c);
void os_calm_end(const struct os_calm *c);

void os_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void os_futex_wake(uint32_t *word);

/* Where the counter may not be read it is the clock of the last tick: no system call. */
static inline uint64_t os_now(void)
{
	struct timespec ts;

	clock_gettime(OS_LIKELY(os_may(OS_COUNTER)) ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE,
		      &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Any clock, by a system call where the counter may not be read: not in a confined thread. */
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
