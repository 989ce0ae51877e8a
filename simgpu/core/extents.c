/* SPDX-License-Identifier: Apache-2.0
 *
 * Extents by address: a sorted list for each page of 2 MiB. At most EXTENT_BOUND bytes are kept in
 * all. The least recently used data goes first; 8-byte integers and small data go last. Any thread,
 * with the lock of contents.c held.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "extents.h"
#include "memory.h"

#define MOST_EXTENTS 131072

struct page {
	struct extent **list;
	uint32_t n, room;
};

static struct page *pages;
static uintptr_t space;
static size_t space_bytes, kept, visible, count;
static uint64_t origins;
static struct extent *newest[RANKS], *oldest[RANKS];

/* ---- stores ---- */

struct store *store_new(size_t bytes, bool mixed)
{
	size_t length = sizeof(struct store) + bytes * (mixed ? 2 : 1);
	struct store *s = bytes <= EXTENT_BOUND ? malloc(length) : NULL;

	if (s)
		*s = (struct store){ .refs = 1, .mixed = mixed, .bytes = bytes };
	return s;
}

void store_drop(struct store *s)
{
	if (s && !--s->refs)
		free(s);
}

static void show(struct store *s, size_t bytes)
{
	if (!s)
		return;
	s->refs++;
	s->visible += bytes;
	visible += bytes;
	if (!s->shown++)
		kept += s->bytes;
}

static void hide(struct store *s, size_t bytes)
{
	if (!s)
		return;
	s->visible -= bytes;
	visible -= bytes;
	if (!--s->shown)
		kept -= s->bytes;
	store_drop(s);
}

/* ---- pages ---- */

static bool prepare(void)
{
	void *m;

	if (pages)
		return true;
	space = memory_space(&space_bytes);
	if (!space)
		return false;
	m = mmap(NULL, (space_bytes / SIM_PAGE + 1) * sizeof(*pages), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return false;
	__atomic_store_n(&pages, m, __ATOMIC_RELEASE);
	return true;
}

static struct page *page_of(uintptr_t addr)
{
	return pages && addr - space < space_bytes ? &pages[(addr - space) / SIM_PAGE] : NULL;
}

static uintptr_t page_end(uintptr_t addr)
{
	return addr + SIM_PAGE - (addr - space) % SIM_PAGE;
}

/* Index of the first extent in a page that ends after an address. */
static uint32_t place(const struct page *p, uintptr_t addr)
{
	uint32_t low = 0, high = p->n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (p->list[mid]->at + p->list[mid]->bytes <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool extents_any(void)
{
	return __atomic_load_n(&count, __ATOMIC_RELAXED) != 0;
}

bool extents_near(uintptr_t addr)
{
	struct page *p = __atomic_load_n(&pages, __ATOMIC_ACQUIRE);

	if (!p || addr - space >= space_bytes)
		return false;
	return __atomic_load_n(&p[(addr - space) / SIM_PAGE].n, __ATOMIC_RELAXED) != 0;
}

struct extent *extent_at(uintptr_t addr)
{
	return extent_next(addr, addr + 1);
}

struct extent *extent_next(uintptr_t addr, uintptr_t end)
{
	struct page *p;

	for (; addr < end && (p = page_of(addr)); addr = page_end(addr)) {
		uint32_t i = p->n ? place(p, addr) : 0;

		if (i < p->n)
			return p->list[i]->at < end ? p->list[i] : NULL;
	}
	return NULL;
}

/* ---- eviction ---- */

static void unlink_use(struct extent *e)
{
	*(e->newer ? &e->newer->older : &newest[e->rank]) = e->older;
	*(e->older ? &e->older->newer : &oldest[e->rank]) = e->newer;
}

static void link_use(struct extent *e)
{
	e->newer = NULL;
	e->older = newest[e->rank];
	*(e->older ? &e->older->newer : &oldest[e->rank]) = e;
	newest[e->rank] = e;
}

void extent_use(struct extent *e)
{
	if (newest[e->rank] == e)
		return;
	unlink_use(e);
	link_use(e);
}

static void take_out(struct page *p, uint32_t i)
{
	struct extent *e = p->list[i];

	memmove(p->list + i, p->list + i + 1, (p->n - i - 1) * sizeof(*p->list));
	__atomic_store_n(&p->n, p->n - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
	unlink_use(e);
	hide(e->store, e->bytes);
	free(e);
	if (!p->n) {
		free(p->list);
		p->list = NULL;
		p->room = 0;
	}
}

/* Copies the extent's part out of a large store, if most of that store is no longer visible. */
static void part_from(struct extent *e)
{
	struct store *old = e->store, *s;

	if (!old || old->mixed || old->visible >= old->bytes / 2)
		return;
	s = store_new(e->bytes, false);
	if (!s)
		return;
	memcpy(s->data, old->data + e->from, e->bytes);
	e->store = s;
	e->from = 0;
	show(s, e->bytes);
	store_drop(s);
	hide(old, e->bytes);
}

static void make_room(void)
{
	for (int r = 0; r < RANKS && kept > EXTENT_BOUND && kept > visible + EXTENT_BOUND / 2; r++)
		for (struct extent *e = oldest[r]; e; e = e->newer)
			part_from(e);
	for (int r = 0; r < RANKS; r++)
		while (oldest[r] && (kept > EXTENT_BOUND || count > MOST_EXTENTS)) {
			struct page *p = page_of(oldest[r]->at);

			take_out(p, place(p, oldest[r]->at));
		}
}

/* ---- making and removing ---- */

static bool put_in(struct page *p, struct extent like)
{
	uint32_t i = place(p, like.at);
	struct extent *e = malloc(sizeof(*e));

	if (e && p->n == p->room) {
		uint32_t room = p->room ? 2 * p->room : 4;
		struct extent **list = realloc(p->list, room * sizeof(*list));

		if (list) {
			p->list = list;
			p->room = room;
		}
	}
	if (!e || p->n == p->room) {
		free(e);
		return false;
	}
	*e = like;
	show(e->store, e->bytes);
	link_use(e);
	memmove(p->list + i + 1, p->list + i, (p->n - i) * sizeof(*p->list));
	p->list[i] = e;
	__atomic_store_n(&p->n, p->n + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
	return true;
}

void extents_insert(const struct extent *like, size_t bytes)
{
	struct extent e = *like;

	if (!prepare())
		return;
	while (bytes && page_of(e.at)) {
		size_t n = page_end(e.at) - e.at;

		e.bytes = (uint32_t)(n < bytes ? n : bytes);
		if (!put_in(page_of(e.at), e))
			return;
		bytes -= e.bytes;
		e.at += e.bytes;
		e.from += e.bytes;
	}
	make_room();
}

/* Cuts [addr, end) out of an extent; the rest on both sides stays. */
static void cut(struct page *p, uint32_t i, uintptr_t addr, uintptr_t end)
{
	struct extent *e = p->list[i], right = *e;
	uintptr_t last = e->at + e->bytes;

	if (e->at >= addr && last <= end) {
		take_out(p, i);
		return;
	}
	show(e->store, 0); /* keeps the store alive while its parts change */
	hide(e->store, e->bytes);
	right.from += (uint32_t)(end - e->at);
	right.at = end;
	right.bytes = last > end ? (uint32_t)(last - end) : 0;
	if (e->at < addr) {
		e->bytes = (uint32_t)(addr - e->at);
		if (right.bytes)
			put_in(p, right);
	} else {
		e->at = right.at;
		e->from = right.from;
		e->bytes = right.bytes;
	}
	show(e->store, e->bytes);
	hide(e->store, 0);
}

void extents_remove(uintptr_t addr, size_t bytes)
{
	uintptr_t end = addr + bytes;
	struct page *p;

	for (; addr < end && (p = page_of(addr)); addr = page_end(addr)) {
		uint32_t i, n;

		while ((n = p->n) && (i = place(p, addr)) < n && p->list[i]->at < end)
			cut(p, i, addr, end);
	}
}

uint64_t extents_origin(void)
{
	return ++origins;
}

/* ---- reading ---- */

const unsigned char *extent_states(const struct extent *e, uintptr_t addr)
{
	return e->store->data + e->store->bytes + e->from + (addr - e->at);
}

void extent_read(const struct extent *e, uintptr_t addr, unsigned char *data, unsigned char *states,
		 size_t bytes)
{
	size_t from = e->from + (addr - e->at);

	if (e->store)
		memcpy(data, e->store->data + from, bytes);
	else if (!e->pattern || e->pattern == (e->pattern & 0xff) * 0x01010101u)
		memset(data, (int)(e->pattern & 0xff), bytes);
	else
		for (size_t i = 0; i < bytes; i++)
			data[i] = (unsigned char)(e->pattern >> 8 * ((addr + i) % 4));
	if (!states)
		return;
	if (e->store && e->store->mixed)
		memcpy(states, extent_states(e, addr), bytes);
	else
		memset(states, e->state, bytes);
}
