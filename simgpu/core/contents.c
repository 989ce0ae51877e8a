/* SPDX-License-Identifier: Apache-2.0
 *
 * What small transfers left in device memory. Kernels do nothing here, so most device memory has no
 * contents; but programs read back small things they wrote (a count, a flag, a shape), and those
 * are kept: 512-byte cells in a hash table by address. A kernel that is given an address makes us
 * forget the cell there, since it would have written: what is read then is zero, never a stale
 * value that a program could take for a size.
 *
 * Any thread; one lock, not taken while nothing is stored.
 */
#include <stdlib.h>
#include <string.h>
#include "core.h"

#define CELL	   512
#define BUCKETS	   16384
#define MOST_CELLS 65536
#define ARGS_MOST  64
#define WORDS_MOST 128 /* of each argument are looked at */

struct cell {
	struct cell *next;
	uintptr_t number; /* address / CELL */
	uint64_t valid[CELL / 64];
	unsigned char data[CELL];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cell *buckets[BUCKETS];
static size_t cells;
static __thread uintptr_t stack_top;

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

static bool any(void)
{
	return __atomic_load_n(&cells, __ATOMIC_RELAXED) != 0;
}

/* Calls for each part of [addr, addr + bytes) that lies in one cell. */
#define EACH_PART(addr, bytes, at, n)                                                          \
	for (size_t at = 0, n = 0; at < (bytes) && (n = CELL - ((addr) + at) % CELL,           \
						   n = n < (bytes)-at ? n : (bytes)-at, true); \
	     at += n)

static void put(uintptr_t addr, const unsigned char *src, size_t bytes)
{
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = make((addr + at) / CELL);
		size_t low = (addr + at) % CELL;

		if (!c)
			return;
		memcpy(c->data + low, src + at, n);
		for (size_t i = low; i < low + n; i++)
			c->valid[i / 64] |= (uint64_t)1 << i % 64;
	}
}

/* Byte for byte, zero where it is not known. False if the first cell is not: a kernel was given
 * that address, and may have written over what follows. */
static bool get(uintptr_t addr, unsigned char *dst, size_t bytes)
{
	memset(dst, 0, bytes);
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = *slot((addr + at) / CELL);
		size_t low = (addr + at) % CELL;

		if (!at && !c)
			return false;
		for (size_t i = low; c && i < low + n; i++)
			if (c->valid[i / 64] >> i % 64 & 1)
				dst[at + i - low] = c->data[i];
	}
	return true;
}

void contents_drop(uintptr_t base, size_t bytes)
{
	if (!any() || !bytes)
		return;
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
	if (any())
		contents_drop((uintptr_t)ptr, 1);
}

void contents_zero(void *ptr, size_t bytes)
{
	uintptr_t addr = (uintptr_t)ptr;

	if (!any())
		return;
	pthread_mutex_lock(&lock);
	EACH_PART(addr, bytes, at, n)
	{
		struct cell *c = *slot((addr + at) / CELL);

		if (c)
			memset(c->data + (addr + at) % CELL, 0, n);
	}
	pthread_mutex_unlock(&lock);
}

/* Other functions' variables lie between the arguments, which sanitizers would not let us read. */
__attribute__((no_sanitize("address"))) static void scan(const uintptr_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sim_is_device_ptr((void *)words[i]))
			sim_forget((void *)words[i]);
}

void contents_scan(const void *data, size_t bytes)
{
	size_t skip = -(uintptr_t)data % sizeof(uintptr_t); /* pointers are aligned */

	if (any() && bytes > skip)
		scan((const uintptr_t *)((uintptr_t)data + skip),
		     (bytes - skip) / sizeof(uintptr_t));
}

static uintptr_t find_stack_top(void)
{
	pthread_attr_t attr;
	void *base = NULL;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &base, &size);
		pthread_attr_destroy(&attr);
	}
	return (uintptr_t)base + size;
}

size_t contents_reach(const void *p)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)p;

	if (!stack_top)
		stack_top = find_stack_top();
	return at >= here && at < stack_top ? stack_top - at : 0;
}

/*
 * The runtime is not told how many arguments a kernel takes, nor their sizes. The compiler's launch
 * stubs keep both the array and the arguments on the stack, so everything between here and the top
 * of the stack may be read: the walk ends at the first pointer that leads elsewhere. What lies
 * behind an argument is looked at too; if that is an address, too much is forgotten, which is the
 * smaller harm.
 */
__attribute__((no_sanitize("address"))) void contents_launch(void **args)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), a = (uintptr_t)args;

	if (!any() || !contents_reach(args))
		return;
	for (int i = 0; i < ARGS_MOST && a + (i + 1) * sizeof(void *) <= stack_top; i++) {
		uintptr_t p = (uintptr_t)args[i];
		size_t most = WORDS_MOST * sizeof(void *);

		if (p < here || p >= stack_top)
			return;
		contents_scan((const void *)p, stack_top - p < most ? stack_top - p : most);
	}
}

static int copy_to_device(uintptr_t dst, const void *src, size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (bytes <= SIM_SMALL)
		put(dst, src, bytes);
	else
		drop(dst / CELL);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

static int copy_to_host(void *dst, uintptr_t src, size_t bytes)
{
	if (bytes > SIM_SMALL || !any()) {
		memset(dst, 0, bytes);
		return SIM_OK;
	}
	pthread_mutex_lock(&lock);
	get(src, dst, bytes);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

static int copy_on_device(uintptr_t dst, uintptr_t src, size_t bytes)
{
	unsigned char data[SIM_SMALL];

	if (!any())
		return SIM_OK;
	pthread_mutex_lock(&lock);
	if (bytes <= SIM_SMALL && get(src, data, bytes))
		put(dst, data, bytes);
	else
		drop(dst / CELL);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
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
	if (!(byte & 0xff) && !any())
		return SIM_OK; /* what is not known reads as zero anyhow */
	if (bytes > SIM_SMALL) {
		contents_drop((uintptr_t)dst, bytes);
		return SIM_OK;
	}
	memset(data, byte, bytes);
	return copy_to_device((uintptr_t)dst, data, bytes);
}
