/* SPDX-License-Identifier: Apache-2.0
 *
 * Pending work: its end depends on other ranks, as that of a collective. The call that starts it
 * returns at once, as on a card. A thread that reads its result or waits for its stream waits for
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PENDING_HOLES 16

enum pending_state {
	PENDING_WAITS,
	PENDING_DONE,
	PENDING_FAILED, /* it will never end; its stream hangs until the work is abandoned */
};

struct pending {
	uint64_t number; /* from 1, in the order in which work was started */
	int device;
	uintptr_t base; /* the range that it will write */
	size_t bytes;
	/* Checks without waiting whether it can end, and if so stores its result. */
	enum pending_state (*poll)(struct pending *p);
	/* Sleeps until something may have changed, at most a fraction of a second, and releases the
	 * lock meanwhile. */
	void (*sleep)(struct pending *p);
	/* Whether the ranks that it waits for are idle; called once a second. */
	bool (*idle)(struct pending *p);
	void (*drop)(struct pending *p); /* frees it */

	enum pending_state state;
	uint64_t failed_ms; /* time at which it failed */
	bool late;	    /* kernels no longer wait for it */
	bool overdue;	    /* queries no longer wait for it */
	int n_holes;	    /* ranges that were overwritten or forgotten since it started */
	struct {
		uintptr_t from, to;
	} holes[PENDING_HOLES];
	struct pending *next;
};

extern unsigned int pending_count; /* read without the lock */

void pending_lock(void);
void pending_unlock(void);
/* Takes ownership: the work may have ended and be freed on return. Sets its number. */
void pending_add(struct pending *p, uint64_t *numbered);
/* Ends all work for which `mine` is true, whatever its state, because its communicator is gone. */
void pending_give_up(bool (*mine)(struct pending *p, void *what), void *what);
/* Finds the next stretch in [*from, to) of its result that was not overwritten: sets its begin and
 * end; false if there is none. */
bool pending_wants(const struct pending *p, uintptr_t *from, uintptr_t to, uintptr_t *end);

uint64_t pending_now_ms(void); /* real time (CLOCK_MONOTONIC) */
void pending_poll(void);
bool pending_busy(uint64_t number);
/* Waits in real time for work that has ended by the device's clock, as long as its peers are
 * active. True if it has not ended then. */
bool pending_overdue(uint64_t number);
int pending_wait(uint64_t number); /* 0, or 719 if the work has failed */
int pending_wait_all(int device);
/* Waits for pending writes to a range: the host without limit, a kernel while the peers are
 * active. */
int pending_read_slow(uintptr_t addr, size_t bytes, bool host);
void pending_write_slow(uintptr_t addr, size_t bytes);

static inline bool pending_any(void)
{
	return __atomic_load_n(&pending_count, __ATOMIC_ACQUIRE) != 0;
}

static inline int pending_read(const void *addr, size_t bytes, bool host)
{
	return pending_any() ? pending_read_slow((uintptr_t)addr, bytes, host) : 0;
}

static inline void pending_write(const void *addr, size_t bytes)
{
	if (pending_any())
		pending_write_slow((uintptr_t)addr, bytes);
}
