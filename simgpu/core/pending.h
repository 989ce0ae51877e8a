/* SPDX-License-Identifier: Apache-2.0
 *
 * Work whose end others decide: a collective waits for its other ranks. The call that starts it
 * returns at once, as on a card; whoever reads what it will write, or waits for its stream, waits
 * for it.
 */
#ifndef SIMGPU_PENDING_H
#define SIMGPU_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PENDING_HOLES 16

enum pending_state {
	PENDING_WAITS,
	PENDING_DONE,
	PENDING_FAILED, /* it will never end: its stream hangs until it is given up */
};

struct pending {
	uint64_t number; /* from 1, in the order in which work was started */
	int device;
	uintptr_t base; /* what it will write */
	size_t bytes;
	/* Looks, without waiting, whether it can end; if so, it has stored its result. */
	enum pending_state (*poll)(struct pending *p);
	/* Sleeps until something may have changed, at most a fraction of a second, with the lock
	 * released meanwhile. */
	void (*sleep)(struct pending *p);
	/* Whether those it waits for do nothing any more; asked about once a second. */
	bool (*idle)(struct pending *p);
	void (*drop)(struct pending *p); /* frees it */

	enum pending_state state;
	uint64_t failed_ms; /* since when it has failed */
	bool late;	    /* kernels wait for it no longer */
	bool overdue;	    /* nor does who asks whether it has ended */
	int n_holes;	    /* what was written over, or forgotten, after it was started */
	struct {
		uintptr_t from, to;
	} holes[PENDING_HOLES];
	struct pending *next;
};

extern unsigned int pending_count; /* read without the lock */

void pending_lock(void);
void pending_unlock(void);
/* Takes it over: it may have ended, and be freed, on return. Gives its number. */
void pending_add(struct pending *p, uint64_t *numbered);
/* All work for which `mine` is true has ended now, whatever its state (its communicator is gone).
 */
void pending_give_up(bool (*mine)(struct pending *p, void *what), void *what);
/* The next stretch in [*from, to) of its result that is still wanted: sets where it begins and
 * ends; false if there is none. */
bool pending_wants(const struct pending *p, uintptr_t *from, uintptr_t to, uintptr_t *end);

void pending_poll(void);
bool pending_busy(uint64_t number);
/* By the device's clock it has ended: waits, really, while those it waits for do something. */
bool pending_overdue(uint64_t number);
int pending_wait(uint64_t number); /* a result */
int pending_wait_all(int device);
/* Waits for what will write here: the host without limit, a kernel while the others do something.
 */
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

#endif
