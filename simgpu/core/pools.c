/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered pools. A pool takes spans of 32 MiB and more from its device and allocates pieces
 * of them. Simulated work is done at the call, so a freed piece can be used again at once. Memory
 * above a pool's release threshold is freed at the next synchronization. Any thread; under
 * memory_lock.
 */
#include <string.h>
#include "memory.h"

#define POOL_KIND SIM_KIND('P', 'O', 'L', '1')
#define PIECE	  ((size_t)512)
#define SPAN	  ((size_t)32 << 20)
#define LARGE	  (SPAN / 2) /* larger pieces get spans of their own */

enum {
	ATTR_REUSE_EVENTS = 1,
	ATTR_REUSE_OPPORTUNISTIC,
	ATTR_REUSE_INTERNAL,
	ATTR_THRESHOLD,
	ATTR_RESERVED,
	ATTR_RESERVED_HIGH,
	ATTR_USED,
	ATTR_USED_HIGH,
};

struct sim_pool {
	int device;
	bool builtin, doomed;
	int reuse[4];
	uint64_t threshold, most;
	uint64_t reserved, reserved_high, used, used_high;
	struct arena *arenas;
	struct sim_pool *next; /* list of all pools */
};

static struct sim_pool defaults[SIM_MAX_DEVICES];
static struct sim_pool *current[SIM_MAX_DEVICES];
static struct sim_pool *made;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_defaults(void)
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		defaults[i] =
			(struct sim_pool){ .device = i, .builtin = true, .reuse = { 0, 1, 1, 1 } };
}

struct sim_pool *pool_default(int device)
{
	pthread_once(&once, make_defaults);
	return &defaults[device];
}

struct sim_pool *pool_current(int device)
{
	return current[device] ? current[device] : pool_default(device);
}

struct sim_pool *pool_check(void *handle)
{
	struct sim_pool *p = handle;

	pool_default(0);
	if (p >= defaults && p < defaults + SIM_MAX_DEVICES)
		return p;
	return sim_handle_check(handle, POOL_KIND);
}

int pool_device(const struct sim_pool *pool)
{
	return pool->device;
}

int pool_set_current(int device, struct sim_pool *pool)
{
	if (!pool_check(pool) || pool->device != device)
		return SIM_INVALID;
	current[device] = pool;
	return SIM_OK;
}

int pool_create(struct sim_pool **out, int device, size_t max_size)
{
	struct sim_pool *p = sim_handle(POOL_KIND, sizeof(*p));

	if (!p)
		return SIM_NOMEM;
	p->device = device;
	p->most = max_size;
	p->reuse[1] = p->reuse[2] = p->reuse[3] = 1;
	pthread_mutex_lock(&memory_lock);
	p->next = made;
	made = p;
	pthread_mutex_unlock(&memory_lock);
	*out = p;
	return SIM_OK;
}

/* ---- spans ---- */

static void drop_span(struct sim_pool *p, struct arena *a)
{
	if (a->prev)
		a->prev->next = a->next;
	else
		p->arenas = a->next;
	if (a->next)
		a->next->prev = a->prev;
	p->reserved -= a->pages * SIM_PAGE;
	arena_drop(a);
}

/* Frees empty spans until the pool holds at most `keep` bytes. */
static bool trim(struct sim_pool *p, uint64_t keep)
{
	bool any = false;

	for (struct arena *a = p->arenas, *next; a && p->reserved > keep; a = next) {
		next = a->next;
		if (a->slots.free == a->slots.n && p->reserved - a->pages * SIM_PAGE >= keep) {
			drop_span(p, a);
			any = true;
		}
	}
	return any;
}

static void remove_made(struct sim_pool *p)
{
	struct sim_pool **q = &made;

	while (*q && *q != p)
		q = &(*q)->next;
	if (*q)
		*q = p->next;
	sim_handle_free(p);
}

bool pools_release(int device)
{
	bool any = trim(pool_default(device), 0);

	for (struct sim_pool *p = made; p; p = p->next)
		if (p->device == device)
			any |= trim(p, 0);
	return any;
}

static struct arena *new_span(struct sim_pool *p, size_t bytes, size_t piece)
{
	size_t pages = (bytes + SPAN - 1) / SPAN * (SPAN / SIM_PAGE);
	struct arena *a;

	if (p->most && p->reserved + pages * SIM_PAGE > p->most)
		return NULL;
	a = arena_new(p->device, pages, piece, p, 0);
	if (!a) { /* only as many pages as needed */
		pages = (bytes + SIM_PAGE - 1) / SIM_PAGE;
		a = arena_new(p->device, pages, piece, p, 0);
	}
	if (!a)
		return NULL;
	a->next = p->arenas;
	if (a->next)
		a->next->prev = a;
	p->arenas = a;
	p->reserved += pages * SIM_PAGE;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return a;
}

static size_t piece_for(size_t bytes)
{
	return bytes >= LARGE ? SIM_PAGE : PIECE;
}

static uintptr_t span_take(struct sim_pool *p, size_t bytes)
{
	size_t piece = piece_for(bytes);
	struct arena *a;

	for (a = p->arenas; a; a = a->next) {
		uintptr_t addr = a->piece == piece ? arena_take(a, bytes) : 0;

		if (addr)
			return addr;
	}
	a = new_span(p, bytes, piece);
	if (!a && pools_release(p->device))
		a = new_span(p, bytes, piece);
	return a ? arena_take(a, bytes) : 0;
}

int pool_alloc(struct sim_pool *p, uintptr_t *out, size_t bytes)
{
	size_t piece = piece_for(bytes);
	uintptr_t addr;

	if (!out || !bytes)
		return SIM_INVALID;
	if (bytes > sim_card()->memory)
		return SIM_NOMEM;
	pthread_mutex_lock(&memory_lock);
	addr = span_take(p, bytes);
	if (addr) {
		p->used += (bytes + piece - 1) / piece * piece;
		if (p->used > p->used_high)
			p->used_high = p->used;
	}
	pthread_mutex_unlock(&memory_lock);
	*out = addr;
	return addr ? SIM_OK : SIM_NOMEM;
}

void pool_block_free(struct arena *a, uintptr_t addr)
{
	struct sim_pool *p = a->pool;

	p->used -= arena_give(a, addr);
	if (p->doomed) {
		trim(p, 0);
		if (!p->arenas)
			remove_made(p);
	}
}

/* A destroyed pool with live blocks is freed with the last of them. */
int pool_destroy(struct sim_pool *p)
{
	if (!pool_check(p) || p->builtin)
		return SIM_INVALID;
	pthread_mutex_lock(&memory_lock);
	if (current[p->device] == p)
		current[p->device] = NULL;
	p->doomed = true;
	trim(p, 0);
	if (!p->arenas)
		remove_made(p);
	pthread_mutex_unlock(&memory_lock);
	return SIM_OK;
}

int pool_trim(struct sim_pool *p, size_t keep)
{
	pthread_mutex_lock(&memory_lock);
	trim(p, keep);
	pthread_mutex_unlock(&memory_lock);
	return SIM_OK;
}

void pools_sync(int device)
{
	struct sim_pool *p = pool_default(device);

	if (!made && !p->reserved)
		return;
	pthread_mutex_lock(&memory_lock);
	trim(p, p->threshold);
	for (p = made; p; p = p->next)
		if (p->device == device)
			trim(p, p->threshold);
	pthread_mutex_unlock(&memory_lock);
}

static void empty(struct sim_pool *p)
{
	while (p->arenas)
		drop_span(p, p->arenas);
	p->used = 0;
}

void pools_reset(int device)
{
	empty(pool_default(device));
	for (struct sim_pool *p = made; p; p = p->next)
		if (p->device == device)
			empty(p);
}

/* ---- attributes ---- */

static uint64_t *counter(struct sim_pool *p, int attribute)
{
	uint64_t *counters[] = { &p->threshold, &p->reserved, &p->reserved_high, &p->used,
				 &p->used_high };

	return attribute >= ATTR_THRESHOLD && attribute <= ATTR_USED_HIGH
		       ? counters[attribute - ATTR_THRESHOLD]
		       : NULL;
}

int pool_get(struct sim_pool *p, int attribute, void *value)
{
	uint64_t *c = counter(p, attribute);

	if (!value)
		return SIM_INVALID;
	if (c)
		*(uint64_t *)value = __atomic_load_n(c, __ATOMIC_RELAXED);
	else if (attribute >= ATTR_REUSE_EVENTS && attribute <= ATTR_REUSE_INTERNAL)
		*(int *)value = p->reuse[attribute];
	else
		return SIM_INVALID;
	return SIM_OK;
}

/* High-water marks accept only 0, which restarts them at the current value. */
int pool_set(struct sim_pool *p, int attribute, const void *value)
{
	if (!value)
		return SIM_INVALID;
	if (attribute >= ATTR_REUSE_EVENTS && attribute <= ATTR_REUSE_INTERNAL)
		p->reuse[attribute] = *(const int *)value;
	else if (attribute == ATTR_THRESHOLD)
		p->threshold = *(const uint64_t *)value;
	else if (attribute == ATTR_RESERVED_HIGH && !*(const uint64_t *)value)
		p->reserved_high = p->reserved;
	else if (attribute == ATTR_USED_HIGH && !*(const uint64_t *)value)
		p->used_high = p->used;
	else
		return SIM_INVALID;
	return SIM_OK;
}
