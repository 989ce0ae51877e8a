/* SPDX-License-Identifier: Apache-2.0
 *
 * What small transfers left in device memory. Kernels do nothing here, so most device memory has no
 * contents; but programs read back small things they wrote (a count, a flag, a shape), and those
 * are kept: 512-byte cells in a hash table by address. A kernel that is given an address makes us
 * forget the cell there, since it would have written: what is read then is zero, never a stale
 * value that a program could take for a size.
 *
 * What the small kernels that are computed (small.c) made of unknown values is kept as a guess: it
 * reads as any other, but they can tell it from what is known.
 *
 * Any thread; one lock, not taken while nothing is stored.
 */
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "pending.h"

#define CELL	    512
#define BUCKETS	    16384
#define MOST_CELLS  65536
#define NUMBER_MOST 16

enum { UNKNOWN = CONTENTS_UNKNOWN, GUESS = CONTENTS_GUESS, KNOWN = CONTENTS_KNOWN };

struct cell {
	struct cell *next;
	uintptr_t number;	  /* address / CELL */
	unsigned char data[CELL]; /* zero where it is unknown */
	unsigned char states[CELL];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cell *buckets[BUCKETS];
static size_t cells;

static struct cell **slot(uintptr_t number)
{
	struct cell **p = &buckets[(number * 0x9e3779b97f4a7c15ull) >> 50];

	while (*p && (*p)->number != number)
		p = &(*p)->next;
	return p;
}

static struct cell *make(uintptr_t number)
{
	struct cell **p = slot(number);

	if (!*p && cells < MOST_CELLS && (*p = calloc(1, sizeof(**p)))) {
		(*p)->number = number;
		__atomic_store_n(&cells, cells + 1, __ATOMIC_RELAXED);
	}
	return *p;
}

static void drop(uintptr_t number)
{
	struct cell **p = slot(number), *c = *p;

	if (!c)
		return;
	*p = c->next;
	free(c);
	__atomic_store_n(&cells, cells - 1, __ATOMIC_RELAXED);
}

bool contents_any(void)
{
	return __atomic_load_n(&cells, __ATOMIC_RELAXED) != 0 || pending_any();
}

/* Calls for each part of [addr, addr + bytes) that lies in one cell. */
#define EACH_PART(addr, bytes, at, n)                                                          \
	for (size_t at = 0, n = 0; at < (bytes) && (n = CELL - ((addr) + at) % CELL,           \
						   n = n < (bytes)-at ? n : (bytes)-at, true); \
	     at += n)

static void put(uintptr_t addr, const unsigned char *src, size_t bytes, int state)
{
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = make((addr + at) / CELL);
		size_t low = (addr + at) % CELL;

		if (!c)
			return;
		memcpy(c->data + low, src + at, n);
		memset(c->states + low, state, n);
	}
}

static void clear(uintptr_t addr, size_t bytes)
{
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = *slot((addr + at) / CELL);
		size_t low = (addr + at) % CELL;

		if (!c)
			continue;
		memset(c->data + low, 0, n);
		memset(c->states + low, UNKNOWN, n);
	}
}

/* Bytes and what is known of each. False, and all unknown, if the first cell is: a kernel was given
 * that address, and may have written over what follows. */
static bool get(uintptr_t addr, unsigned char *dst, unsigned char *states, size_t bytes)
{
	memset(dst, 0, bytes);
	memset(states, UNKNOWN, bytes);
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = *slot((addr + at) / CELL);
		size_t low = (addr + at) % CELL;

		if (!at && !c)
			return false;
		if (!c)
			continue;
		memcpy(dst + at, c->data + low, n);
		memcpy(states + at, c->states + low, n);
	}
	return true;
}

void contents_drop(uintptr_t base, size_t bytes)
{
	if (!contents_any() || !bytes)
		return;
	pending_write((void *)(base / CELL * CELL), (base % CELL + bytes + CELL - 1) / CELL * CELL);
	pthread_mutex_lock(&lock);
	if (bytes / CELL <= 2 * BUCKETS) {
		for (uintptr_t n = base / CELL; n <= (base + bytes - 1) / CELL; n++)
			drop(n);
	} else {
		for (size_t i = 0; i < BUCKETS; i++)
			for (struct cell *c = buckets[i], *next; c; c = next) {
				next = c->next;
				if (c->number * CELL - base < bytes)
					drop(c->number);
			}
	}
	pthread_mutex_unlock(&lock);
}

void sim_forget(const void *ptr)
{
	if (contents_any())
		contents_drop((uintptr_t)ptr, 1);
}

bool contents_look(void *dst, const void *base, size_t offset, size_t bytes)
{
	unsigned char states[NUMBER_MOST], first[1], states_first[1];
	bool known = false;

	memset(dst, 0, bytes);
	if (!contents_any())
		return false;
	pending_read((const char *)base + offset, bytes, false);
	pthread_mutex_lock(&lock);
	if (get((uintptr_t)base, first, states_first, 1) &&
	    get((uintptr_t)base + offset, dst, states, bytes))
		known = !memchr(states, UNKNOWN, bytes) && !memchr(states, GUESS, bytes);
	pthread_mutex_unlock(&lock);
	return known;
}

void contents_write(void *dst, const void *src, size_t bytes, bool known)
{
	const unsigned char *data = src;
	bool zero = true;

	for (size_t i = 0; i < bytes; i++)
		zero = zero && !data[i];
	pending_write(dst, bytes);
	pthread_mutex_lock(&lock);
	if (zero && !known)
		clear((uintptr_t)dst, bytes); /* as it reads anyhow */
	else
		put((uintptr_t)dst, data, bytes, known ? KNOWN : GUESS);
	pthread_mutex_unlock(&lock);
}

void contents_forget(uintptr_t addr, size_t bytes)
{
	if (!contents_any())
		return;
	pending_write((void *)addr, bytes);
	pthread_mutex_lock(&lock);
	clear(addr, bytes);
	pthread_mutex_unlock(&lock);
}

static int copy_to_device(uintptr_t dst, const void *src, size_t bytes)
{
	pending_write((void *)dst, bytes);
	pthread_mutex_lock(&lock);
	if (bytes <= SIM_SMALL)
		put(dst, src, bytes, KNOWN);
	else
		drop(dst / CELL);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

static int copy_to_host(void *dst, uintptr_t src, size_t bytes)
{
	unsigned char states[SIM_SMALL];
	int result = pending_read((const void *)src, bytes, true);

	if (result)
		return result;
	if (bytes > SIM_SMALL || !contents_any()) {
		memset(dst, 0, bytes);
		return SIM_OK;
	}
	pthread_mutex_lock(&lock);
	get(src, dst, states, bytes);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

static void put_each(uintptr_t dst, const unsigned char *data, const unsigned char *states,
		     size_t bytes)
{
	clear(dst, bytes);
	for (size_t i = 0, n; i < bytes; i += n) {
		for (n = 1; i + n < bytes && states[i + n] == states[i]; n++)
			;
		if (states[i] != UNKNOWN)
			put(dst + i, data + i, n, states[i]);
	}
}

static int copy_on_device(uintptr_t dst, uintptr_t src, size_t bytes)
{
	unsigned char data[SIM_SMALL], states[SIM_SMALL];

	if (!contents_any())
		return SIM_OK;
	pending_read((const void *)src, bytes, false);
	pending_write((void *)dst, bytes);
	pthread_mutex_lock(&lock);
	if (bytes > SIM_SMALL) {
		drop(dst / CELL);
	} else {
		get(src, data, states, bytes);
		put_each(dst, data, states, bytes);
	}
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

void contents_read(const void *src, void *data, unsigned char *states, size_t bytes)
{
	pending_read(src, bytes, false);
	pthread_mutex_lock(&lock);
	get((uintptr_t)src, data, states, bytes);
	pthread_mutex_unlock(&lock);
}

void contents_store(void *dst, const void *data, const unsigned char *states, size_t bytes)
{
	pending_write(dst, bytes);
	pthread_mutex_lock(&lock);
	put_each((uintptr_t)dst, data, states, bytes);
	pthread_mutex_unlock(&lock);
}

bool contents_next(const void *base, size_t bytes, size_t *at, size_t *length)
{
	uintptr_t addr = (uintptr_t)base;
	size_t from = *at, to;

	pending_read(base, bytes, false);
	if (!contents_any())
		return false;
	pthread_mutex_lock(&lock);
	if (!*slot(addr / CELL)) /* as for get() */
		from = bytes;
	while (from < bytes && !*slot((addr + from) / CELL))
		from += CELL - (addr + from) % CELL;
	to = from;
	while (to < bytes && *slot((addr + to) / CELL))
		to += CELL - (addr + to) % CELL;
	pthread_mutex_unlock(&lock);
	*at = from;
	*length = (to < bytes ? to : bytes) - from;
	return from < bytes;
}

int sim_copy(void *dst, const void *src, size_t bytes)
{
	bool to = sim_is_device_ptr(dst), from = sim_is_device_ptr(src);

	if (!bytes)
		return SIM_OK;
	if (!dst || !src)
		return SIM_INVALID;
	if (to && from)
		return copy_on_device((uintptr_t)dst, (uintptr_t)src, bytes);
	if (to)
		return copy_to_device((uintptr_t)dst, src, bytes);
	if (from)
		return copy_to_host(dst, (uintptr_t)src, bytes);
	memmove(dst, src, bytes);
	return SIM_OK;
}

int sim_fill(void *dst, int byte, size_t bytes)
{
	unsigned char data[SIM_SMALL];

	if (!bytes)
		return SIM_OK;
	if (!dst)
		return SIM_INVALID;
	if (!sim_is_device_ptr(dst)) {
		memset(dst, byte, bytes);
		return SIM_OK;
	}
	if (bytes > SIM_SMALL) {
		contents_drop((uintptr_t)dst, bytes);
		return SIM_OK;
	}
	memset(data, byte, bytes);
	return copy_to_device((uintptr_t)dst, data, bytes);
}
