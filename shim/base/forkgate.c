/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the gate that wait, each for a limited time.
 */
#include "forkgate.h"

#define MS	  1000000ull
#define WALK_WAIT (20 * MS)
#define FORK_WAIT (500 * MS)
#define NAP	  (MS / 20)

struct forkgate forkgate;

/* Called by a walk that begins during a fork: waits for the end of the fork, at most WALK_WAIT. */
void forkgate_wait(void)
{
	uint64_t began = os_now();

	forkgate_leave(NULL);
	while (__atomic_load_n(&forkgate.closed, __ATOMIC_SEQ_CST) && os_now() - began < WALK_WAIT)
		os_futex_wait(&forkgate.closed, 1, MS);
	__atomic_add_fetch(&forkgate.inside, 1, __ATOMIC_SEQ_CST);
}

void forkgate_close(void)
{
	uint64_t began = os_now();
	uint32_t inside;

	__atomic_store_n(&forkgate.closed, 1, __ATOMIC_SEQ_CST);
	while ((inside = __atomic_load_n(&forkgate.inside, __ATOMIC_SEQ_CST)) &&
	       os_now() - began < FORK_WAIT)
		os_futex_wait(&forkgate.inside, inside, NAP); /* the one inside can need our core */
}

void forkgate_open(void)
{
	__atomic_store_n(&forkgate.closed, 0, __ATOMIC_SEQ_CST);
	os_futex_wake(&forkgate.closed);
}

void forkgate_reset(void)
{
	__atomic_store_n(&forkgate.inside, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&forkgate.closed, 0, __ATOMIC_SEQ_CST);
}

int forkgate_objects(int (*see)(struct dl_phdr_info *, size_t, void *), void *ctx)
{
	sigset_t mask;
	int r;

	forkgate_enter(&mask);
	r = dl_iterate_phdr(see, ctx);
	forkgate_leave(&mask);
	return r;
}
