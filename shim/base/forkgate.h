/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library does not reset the lock of its list of loaded objects in a forked child. A fork
 * while some thread is in dl_iterate_phdr (an unwinder on new code, our module scans) would leave a
 * child that hangs in its first dlopen. So a fork waits until none of our walks is running, and
 * walks wait until a fork is over. Both waits are limited; after that they go on regardless. Our
 * thread also holds the gate while it starts, because of allocators' locks that the C library does
 * not know; it leaves with NULL.
 */
#pragma once

#include <link.h>

#include "os.h"

struct forkgate {
	uint32_t inside;
	uint32_t closed;
} __attribute__((aligned(64)));

extern struct forkgate forkgate;

void forkgate_wait(void);
void forkgate_close(void); /* before a fork */
void forkgate_open(void);  /* after it, in the parent */
void forkgate_reset(void); /* in the child */

/* dl_iterate_phdr() inside the gate. */
int forkgate_objects(int (*see)(struct dl_phdr_info *, size_t, void *), void *ctx);

/* Blocks signals inside the gate: a handler that jumps away would leave the loader's lock held. */
static inline void forkgate_enter(sigset_t *mask)
{
	os_block_signals(mask);
	__atomic_add_fetch(&forkgate.inside, 1, __ATOMIC_SEQ_CST);
	if (OS_UNLIKELY(__atomic_load_n(&forkgate.closed, __ATOMIC_SEQ_CST)))
		forkgate_wait();
}

static inline void forkgate_leave(const sigset_t *mask)
{
	__atomic_sub_fetch(&forkgate.inside, 1, __ATOMIC_RELEASE);
	if (mask)
		os_unblock_signals(mask);
}
