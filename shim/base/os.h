/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim asks of the operating system: memory, time, files, safe reads of its own memory.
 * Any thread, hook path included: no malloc, no stdio, no locks; errno is the caller's to keep.
 */
#ifndef GMT_OS_H
#define GMT_OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define OS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define OS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OS_LINE	       __attribute__((aligned(64))) /* begins a line of the cache */

void *os_map(size_t bytes); /* zeroed memory that costs nothing until touched; NULL if refused */
void os_unmap(void *memory, size_t bytes);
uint64_t os_mapped(void); /* bytes that os_map gave and os_unmap did not take back */
uint32_t os_tid(void);
uint64_t os_start_ticks(void);	      /* of this process, clock ticks since boot; 0 if not known */
bool os_thread_is_here(uint32_t tid); /* is it one of this process? */
ssize_t os_read_file(const char *path, void *out, size_t size); /* bytes read or -1 */
bool os_write_zeros(int fd, off_t offset, size_t bytes);

/* Reads this process's memory at any address; false where nothing is mapped. Slow (a system call).
 */
bool os_peek(void *out, uintptr_t address, size_t bytes);

/* A file that grows past RLIMIT_FSIZE kills by SIGXFSZ; false if `size` would. */
bool os_may_grow_to(uint64_t size);

/* No signal is handled between the two; one that our own writes raised in between is taken back. */
void os_block_signals(sigset_t *old);
void os_restore_signals(const sigset_t *old);

void os_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void os_futex_wake(uint32_t *word);

static inline uint64_t os_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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

#endif
