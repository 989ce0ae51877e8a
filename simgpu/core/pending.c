/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of pending work (pending.h), in the order in which it was started. Data that is written
 * to its destination meanwhile stays, because it comes later on the stream. Any thread; one lock,
 * which is not held while a thread sleeps. Nothing here runs while nothing is pending.
 */
#include <pthread.h>
#include <time.h>
#include "core.h"
#include "pending.h"

#define FAILED_WAIT_MS 5000 /* time to abort failed work before calls that wait for it fail */
#define IDLE_MS	       10000
#define LOOK_MS	       1000 /* between two checks whether the other ranks are idle */
#define LOOKS_IDLE     2    /* checks in a row that find them idle, to end a wait */
#define ERR_LAUNCH     719

unsigned int pending_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *first, **last = &first;
static uint64_t numbers;
static __thread bool inside; /* in pending work, whose stores are not the program's */

uint64_t pending_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void pending_lock(void)
{
	pthread_mutex_lock(&lock);
	inside = true;
}

void pending_unlock(void)
{
	inside = false;
	pthread_mutex_unlock(&lock);
}

static void take_out(struct pending **at)
{
	struct pending *p = *at;

	*at = p->next;
	if (last == &p->next)
		last = at;
	__atomic_sub_fetch(&pending_count, 1, __ATOMIC_RELEASE);
	p->drop(p);
}

/* Polls all work and removes what has ended. */
static void poll_all(void)
{
	for (struct pending **at = &first; *at;) {
		struct pending *p = *at;

		if (p->state == PENDING_WAITS)
			p->state = p->poll(p);
		if (p->state == PENDING_FAILED && !p->failed_ms)
			p->failed_ms = pending_now_ms();
		if (p->state == PENDING_DONE)
			take_out(at);
		else
			at = &p->next;
	}
}

void pending_add(struct pending *p, uint64_t *numbered)
{
	pending_write((void *)p->base, p->bytes);
	pending_lock();
	p->number = ++numbers;
	p->next = NULL;
	p->state = PENDING_WAITS;
	*last = p;
	last = &p->next;
	*numbered = p->number;
	__atomic_add_fetch(&pending_count, 1, __ATOMIC_RELEASE);
	poll_all();
	pending_unlock();
}

void pending_give_up(bool (*mine)(struct pending *p, void *what), void *what)
{
	pending_lock();
	poll_all();
	for (struct pending **at = &first; *at;)
		if (mine(*at, what))
			take_out(at);
		else
			at = &(*at)->next;
	pending_unlock();
}

void pending_poll(void)
{
	if (!pending_any() || inside)
		return;
	pending_lock();
	poll_all();
	pending_unlock();
}

/* ---- waiting ---- */

static struct pending *by_number(uint64_t number)
{
	struct pending *p = first;

	while (p && p->number != number)
		p = p->next;
	return p;
}

bool pending_busy(uint64_t number)
{
	bool busy = false;

	if (!number || !pending_any() || inside)
		return false;
	pending_lock();
	if (by_number(number)) {
		poll_all();
		busy = by_number(number) != NULL;
	}
	pending_unlock();
	return busy;
}

/* With the lock held. A kernel stops waiting once the other ranks have been idle for IDLE_MS,
 * because they may wait for what this thread does next; on a card only the kernel would wait. */
static int wait_for(uint64_t number, bool host)
{
	uint64_t idle_since = 0, asked = pending_now_ms(), t;
	struct pending *p;

	for (;;) {
		poll_all();
		p = by_number(number);
		if (!p || (p->late && !host))
			return SIM_OK;
		t = pending_now_ms();
		if (p->state == PENDING_FAILED && t - p->failed_ms > FAILED_WAIT_MS)
			return ERR_LAUNCH;
		if (!host && p->state == PENDING_WAITS && t - asked >= LOOK_MS) {
			asked = t;
			if (!p->idle(p))
				idle_since = 0;
			else if (!idle_since)
				idle_since = t;
			p->late = idle_since && t - idle_since > IDLE_MS;
		}
		p->sleep(p);
	}
}

int pending_wait(uint64_t number)
{
	int result;

	if (!number || !pending_any() || inside)
		return SIM_OK;
	pending_lock();
	result = wait_for(number, true);
	pending_unlock();
	return result;
}

/* Other ranks may be behind in real time although they are not behind by the device's clock. */
bool pending_overdue(uint64_t number)
{
	uint64_t asked = pending_now_ms();
	unsigned int idle = 0;
	struct pending *p;

	if (!pending_busy(number))
		return false;
	pending_lock();
	while ((p = by_number(number)) && p->state == PENDING_WAITS && !p->overdue) {
		p->sleep(p);
		poll_all();
		p = by_number(number);
		if (!p || pending_now_ms() - asked < LOOK_MS)
			continue;
		asked = pending_now_ms();
		idle = p->idle(p) ? idle + 1 : 0;
		p->overdue = idle == LOOKS_IDLE;
	}
	pending_unlock();
	return p;
}

int pending_wait_all(int device)
{
	uint64_t upto, number;
	int result = SIM_OK;

	if (!pending_any() || inside)
		return SIM_OK;
	pending_lock();
	upto = numbers;
	do {
		number = 0;
		for (struct pending *p = first; p && !number && p->number <= upto; p = p->next)
			if (p->device == device)
				number = p->number;
		if (number)
			result = wait_for(number, true);
	} while (number && !result);
	pending_unlock();
	return result;
}

/* ---- the destination of pending work ---- */

/* The first byte at or after `addr` that no later write covers. */
static uintptr_t behind_holes(const struct pending *p, uintptr_t addr)
{
	for (int i = 0; i < p->n_holes; i++)
		if (p->holes[i].from <= addr && addr < p->holes[i].to) {
			addr = p->holes[i].to;
			i = -1;
		}
	return addr;
}

static bool covers(const struct pending *p, uintptr_t addr, size_t bytes)
{
	uintptr_t from = addr > p->base ? addr : p->base;
	uintptr_t to = addr + bytes < p->base + p->bytes ? addr + bytes : p->base + p->bytes;

	return from < to && behind_holes(p, from) < to;
}

int pending_read_slow(uintptr_t addr, size_t bytes, bool host)
{
	uint64_t number;
	int result = SIM_OK;

	if (inside)
		return SIM_OK;
	pending_lock();
	do {
		number = 0;
		for (struct pending *p = first; p && !number; p = p->next)
			if (covers(p, addr, bytes) && (host || !p->late))
				number = p->number;
		if (number)
			result = wait_for(number, host);
	} while (number && !result);
	pending_unlock();
	return result;
}

static void add_hole(struct pending *p, uintptr_t from, uintptr_t to)
{
	for (int i = 0; i < p->n_holes; i++)
		if (p->holes[i].from <= from && to <= p->holes[i].to)
			return;
	if (p->n_holes == PENDING_HOLES) { /* the result is dropped */
		p->bytes = 0;
		return;
	}
	p->holes[p->n_holes].from = from;
	p->holes[p->n_holes++].to = to;
}

void pending_write_slow(uintptr_t addr, size_t bytes)
{
	if (inside || !bytes)
		return;
	pending_lock();
	for (struct pending *p = first; p; p = p->next)
		if (covers(p, addr, bytes))
			add_hole(p, addr, addr + bytes);
	pending_unlock();
}

bool pending_wants(const struct pending *p, uintptr_t *from, uintptr_t to, uintptr_t *end)
{
	*from = behind_holes(p, *from);
	*end = to;
	for (int i = 0; i < p->n_holes; i++)
		if (p->holes[i].from > *from && p->holes[i].from < *end)
			*end = p->holes[i].from;
	return *from < to;
}
