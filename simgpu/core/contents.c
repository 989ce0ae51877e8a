/* SPDX-License-Identifier: Apache-2.0
 *
 * Known contents of device memory. Most kernels are not computed, so most memory has no contents.
 * Data from the host, from fills and from computed kernels, and copies of it, are kept (extents.c).
 * Each byte has a state: known; assumed (used like a known one, but reported when it is read); a
 * guess (made from unknown values by a computed kernel, and read like any other); or unknown, which
 * reads as zero.
 *
 * A kernel that is not computed would have overwritten its results. The old contents there are
 * forgotten, so that they are not read as a size. The length of the result is unknown for most
 * kernels. So everything from its address on that came with the same transfer is forgotten. A range
 * whose first byte is in no extent counts as unknown from end to end, whatever follows.
 *
 * Any thread; one lock, which is not taken while nothing is kept nearby.
 */
#include <string.h>
#include "contents.h"
#include "extents.h"
#include "memory.h"
#include "pending.h"

enum { UNKNOWN = CONTENTS_UNKNOWN, GUESS = CONTENTS_GUESS, KNOWN = CONTENTS_KNOWN };

#define NUMBER_MOST 16
#define OTHER_MOST  (1 << 20) /* most bytes of a copy without indices (a batch of images) */
#define SAMPLES	    64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int made_of = CONTENTS_KNOWN; /* state of this thread's results */

/* Calls for each part of [addr, addr + bytes) that lies in one cell. */
#define EACH_PART(addr, bytes, at, n)                                                          \
	for (size_t at = 0, n = 0; at < (bytes) && (n = CELL - ((addr) + at) % CELL,           \
						   n = n < (bytes)-at ? n : (bytes)-at, true); \
	     at += n)

bool contents_any(void)
{
	return extents_any() || pending_any();
}

/* ---- with the lock held ---- */

static void blank(unsigned char *dst, unsigned char *states, size_t at, size_t n)
{
	host_zero(dst + at, n);
	if (states)
		memset(states + at, UNKNOWN, n);
}

/* Reads bytes, and the state of each (unless NULL). If the first byte is in no extent, all are
 * unknown and the result is false. */
static bool get(uintptr_t addr, unsigned char *dst, unsigned char *states, size_t bytes)
{
	uintptr_t at = addr, end = addr + bytes;
	struct extent *e = extent_at(addr);

	for (; e; e = at < end ? extent_next(at, end) : NULL) {
		uintptr_t from = e->at > at ? e->at : at, last = e->at + e->bytes;
		size_t n = (last < end ? last : end) - from;

		blank(dst, states, at - addr, from - at);
		extent_read(e, from, dst + (from - addr), states ? states + (from - addr) : NULL,
			    n);
		extent_use(e);
		at = from + n;
	}
	blank(dst, states, at - addr, end - at);
	return at > addr;
}

/* Merges the extents of a cell into one, with a store of its own. */
static struct extent *make_cell(uintptr_t addr)
{
	uintptr_t start = addr - addr % CELL;
	struct extent *e = extent_next(start, start + CELL);
	struct extent cell = { .at = start,
			       .rank = RANK_SMALL,
			       .origin = e ? e->origin : extents_origin(),
			       .store = store_new(CELL, true) };
	unsigned char *data, *states;

	if (!cell.store)
		return NULL;
	data = cell.store->data;
	states = data + CELL;
	memset(data, 0, 2 * CELL);
	for (uintptr_t at = start; (e = extent_next(at, start + CELL)); at = e->at + e->bytes) {
		uintptr_t from = e->at > start ? e->at : start, last = e->at + e->bytes;

		last = last < start + CELL ? last : start + CELL;
		extent_read(e, from, data + (from - start), states + (from - start), last - from);
	}
	extents_remove(start, CELL);
	extents_insert(&cell, CELL);
	store_drop(cell.store);
	return extent_at(addr);
}

/* Writes part of a cell, in place if the extent there allows it. */
static void put_part(uintptr_t addr, const unsigned char *src, size_t n, int state)
{
	struct extent *e = extent_at(addr);
	unsigned char *data;

	if (!e || e->at + e->bytes < addr + n || !e->store || e->store->shown > 1 ||
	    (!e->store->mixed && e->state != state))
		e = make_cell(addr);
	if (!e)
		return;
	data = e->store->data + e->from + (addr - e->at);
	memcpy(data, src, n);
	if (e->store->mixed)
		memset(data + e->store->bytes, state, n);
	extent_use(e);
}

static void store_parts(uintptr_t addr, const unsigned char *src, size_t bytes, int state)
{
	EACH_PART(addr, bytes, at, n)
	{
		put_part(addr + at, src + at, n, state);
	}
}

/* Marks [addr, addr + bytes) as unknown, but nothing after it. */
static void clear(uintptr_t addr, size_t bytes)
{
	static const unsigned char zeros[CELL];
	size_t most = bytes;

	if (!extent_next(addr, addr + bytes))
		return;
	if (bytes > CELL) {
		extents_remove(addr, bytes);
		most = 1;
	}
	EACH_PART(addr, most, at, n)
	{
		if (most == 1 || extent_next(addr + at, addr + at + n))
			put_part(addr + at, zeros, n, UNKNOWN);
	}
}

/* The least known state of any byte in the range. */
static int least_state(uintptr_t addr, uintptr_t end)
{
	int least = KNOWN;

	for (struct extent *e; addr < end && least; addr = e->at + e->bytes) {
		size_t n;

		e = extent_at(addr);
		if (!e)
			return UNKNOWN;
		n = e->at + e->bytes < end ? e->at + e->bytes - addr : end - addr;
		if (!e->store || !e->store->mixed) {
			least = e->state < least ? e->state : least;
			continue;
		}
		for (const unsigned char *state = extent_states(e, addr); n--; state++)
			least = *state < least ? *state : least;
	}
	return least;
}

/* ---- numbers and ranges ---- */

void contents_begin(void)
{
	made_of = KNOWN;
}

void contents_assume(int state)
{
	made_of = state < made_of ? state : made_of;
}

void contents_computed(unsigned char *states, size_t bytes, bool known)
{
	for (size_t i = 0; i < bytes; i++) {
		if (!known)
			states[i] = UNKNOWN;
		if (states[i] <= GUESS)
			continue;
		contents_assume(states[i]);
		states[i] = (unsigned char)made_of;
	}
}

bool contents_look(void *dst, const void *base, size_t offset, size_t bytes)
{
	unsigned char states[NUMBER_MOST];
	int least = UNKNOWN;

	memset(dst, 0, bytes);
	if (!extents_near((uintptr_t)base) && !pending_any())
		return false;
	pending_read((const char *)base + offset, bytes, false);
	pthread_mutex_lock(&lock);
	if (extent_at((uintptr_t)base) && get((uintptr_t)base + offset, dst, states, bytes))
		least = KNOWN;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < bytes && least > GUESS; i++)
		least = states[i] < least ? states[i] : least;
	if (least > GUESS)
		contents_assume(least);
	return least > GUESS;
}

void contents_write(void *dst, const void *src, size_t bytes, bool known)
{
	const unsigned char *data = src;
	bool zero = true;

	for (size_t i = 0; i < bytes; i++)
		zero = zero && !data[i];
	if (known)
		progress_data(src, bytes);
	pending_write(dst, bytes);
	pthread_mutex_lock(&lock);
	if (zero && !known)
		clear((uintptr_t)dst, bytes); /* unknown bytes read as zero anyway */
	else
		store_parts((uintptr_t)dst, data, bytes, known ? made_of : GUESS);
	pthread_mutex_unlock(&lock);
}

void contents_read(const void *src, void *data, unsigned char *states, size_t bytes)
{
	pending_read(src, bytes, false);
	pthread_mutex_lock(&lock);
	get((uintptr_t)src, data, states, bytes);
	pthread_mutex_unlock(&lock);
}

bool contents_next(const void *base, size_t bytes, size_t *at, size_t *length)
{
	uintptr_t addr = (uintptr_t)base, end = addr + bytes, from = addr + *at, to;
	struct extent *e = NULL;

	pending_read(base, bytes, false);
	pthread_mutex_lock(&lock);
	if (extent_at(addr)) /* unknown as a whole otherwise, as in get() */
		e = extent_next(from, end);
	from = e && e->at > from ? e->at : from;
	for (to = from; e && to < end; e = extent_at(to))
		to = e->at + e->bytes;
	pthread_mutex_unlock(&lock);
	*at = from - addr;
	*length = (to < end ? to : end) - from;
	return to > from;
}

/* Stores a run of bytes that have one state. */
static void store_run(uintptr_t dst, const unsigned char *data, size_t bytes, int state)
{
	struct extent e = { .at = dst, .rank = RANK_INTEGERS, .state = (unsigned char)state };

	if (bytes <= CELL) {
		store_parts(dst, data, bytes, state);
		return;
	}
	e.store = store_new(bytes, false);
	if (!e.store)
		return;
	memcpy(e.store->data, data, bytes);
	e.origin = extents_origin();
	extents_insert(&e, bytes);
	store_drop(e.store);
}

void contents_store(void *dst, const void *data, const unsigned char *states, size_t bytes)
{
	const unsigned char *from = data;

	pending_write(dst, bytes);
	pthread_mutex_lock(&lock);
	clear((uintptr_t)dst, bytes);
	for (size_t i = 0, n; i < bytes; i += n) {
		for (n = 1; i + n < bytes && states[i + n] == states[i]; n++)
			;
		if (states[i] != UNKNOWN) {
			extents_remove((uintptr_t)dst + i, n > CELL ? n : 0);
			store_run((uintptr_t)dst + i, from + i, n, states[i]);
		}
	}
	pthread_mutex_unlock(&lock);
}

void contents_result(const struct pending *p, size_t at, const void *data,
		     const unsigned char *states, size_t bytes)
{
	uintptr_t from = p->base + at, a = from, end;

	if (at + bytes > p->bytes)
		return;
	for (; pending_wants(p, &a, from + bytes, &end); a = end)
		contents_store((void *)a, (const char *)data + (a - from), states + (a - from),
			       end - a);
}

/* ---- forgetting ---- */

void contents_drop(uintptr_t base, size_t bytes)
{
	if (!contents_any() || !bytes)
		return;
	pending_write((void *)base, bytes);
	pthread_mutex_lock(&lock);
	extents_remove(base, bytes);
	pthread_mutex_unlock(&lock);
}

void contents_forget(uintptr_t addr, size_t bytes)
{
	if (!contents_any() || !bytes)
		return;
	pending_write((void *)addr, bytes);
	pthread_mutex_lock(&lock);
	clear(addr, bytes);
	pthread_mutex_unlock(&lock);
}

void sim_forget(const void *ptr)
{
	uintptr_t at = (uintptr_t)ptr, last;
	struct extent *e;
	uint64_t origin;

	pending_write(ptr, CELL - at % CELL);
	if (!extents_near(at))
		return;
	pthread_mutex_lock(&lock);
	e = extent_at(at);
	origin = e ? e->origin : 0;
	for (; e && e->origin == origin; e = extent_at(at)) {
		last = e->at + e->bytes;
		extents_remove(at, last - at);
		at = last;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- copies and fills ---- */

/* Whether the data could be indices or lengths, which decide shapes: 8-byte integers of moderate
 * size. */
static bool are_integers(const unsigned char *src, size_t bytes)
{
	size_t words = bytes / 8, step = words / SAMPLES + 1;
	int64_t word;

	for (size_t i = 0; i < words; i += step) {
		memcpy(&word, src + i * 8, sizeof(word));
		if (word != (int32_t)word)
			return false;
	}
	return words && bytes % 8 == 0;
}

static enum extent_rank rank_of(const unsigned char *src, size_t bytes)
{
	if (bytes <= SIM_SMALL)
		return RANK_SMALL;
	return are_integers(src, bytes) ? RANK_INTEGERS : RANK_OTHER;
}

void contents_from_host(uintptr_t dst, const void *src, size_t bytes)
{
	struct extent e = { .at = dst, .rank = rank_of(src, bytes), .state = KNOWN };
	bool keep = bytes > CELL && (e.rank != RANK_OTHER || bytes <= OTHER_MOST);

	if (keep && (e.store = store_new(bytes, false)))
		memcpy(e.store->data, src, bytes);
	progress_data(src, bytes);
	counts_copied(dst, src, bytes);
	pending_write((void *)dst, bytes);
	pthread_mutex_lock(&lock);
	if (bytes <= CELL) {
		store_parts(dst, src, bytes, KNOWN);
	} else {
		extents_remove(dst, bytes);
		e.origin = extents_origin();
		if (e.store)
			extents_insert(&e, bytes);
		store_drop(e.store);
	}
	pthread_mutex_unlock(&lock);
}

int contents_to_host(void *dst, uintptr_t src, size_t bytes)
{
	int result = pending_read((const void *)src, bytes, true);

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	get(src, dst, NULL, bytes);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

int contents_least(uintptr_t addr, size_t bytes)
{
	int least;

	pthread_mutex_lock(&lock);
	least = least_state(addr, addr + bytes);
	pthread_mutex_unlock(&lock);
	return least;
}

/* Copies part of an extent: a small part byte by byte, a larger one as another extent of the same
 * store. */
static void show_part(uintptr_t dst, struct extent e, uintptr_t from, size_t bytes)
{
	unsigned char data[CELL], states[CELL];

	e.from += (uint32_t)(from - e.at);
	e.pattern = e.pattern >> 8 * ((from - dst) % 4) |
		    e.pattern << (32 - 8 * ((from - dst) % 4)) % 32;
	e.at = dst;
	if (bytes > CELL) {
		extents_remove(dst, bytes); /* cells before it may overlap it */
		extents_insert(&e, bytes);
		return;
	}
	e.bytes = (uint32_t)bytes;
	extent_read(&e, dst, data, states, bytes);
	for (size_t i = 0, n; i < bytes; i += n) {
		for (n = 1; i + n < bytes && states[i + n] == states[i]; n++)
			;
		store_parts(dst + i, data + i, n, states[i]);
	}
}

void contents_on_device(uintptr_t dst, uintptr_t src, size_t bytes)
{
	uint64_t origin;
	bool known;

	if (!contents_any() || dst == src)
		return;
	pending_read((const void *)src, bytes, false);
	pending_write((void *)dst, bytes);
	pthread_mutex_lock(&lock);
	known = extent_at(src) && (dst + bytes <= src || src + bytes <= dst);
	origin = extents_origin();
	extents_remove(dst, bytes);
	for (uintptr_t at = src, end = src + bytes; known && at < end;) {
		struct extent *e = extent_next(at, end), copy;
		uintptr_t last;

		if (!e)
			break;
		at = e->at > at ? e->at : at;
		last = e->at + e->bytes < end ? e->at + e->bytes : end;
		extent_use(e);
		copy = *e;
		copy.origin = origin;
		show_part(dst + (at - src), copy, at, last - at);
		at = last;
	}
	pthread_mutex_unlock(&lock);
}

void contents_fill(uintptr_t dst, uint32_t pattern, size_t bytes)
{
	struct extent e = { .at = dst, .pattern = pattern, .state = KNOWN, .rank = RANK_SMALL };
	unsigned char data[CELL];

	pending_write((void *)dst, bytes);
	pthread_mutex_lock(&lock);
	if (bytes > CELL) {
		extents_remove(dst, bytes);
		e.origin = extents_origin();
		extents_insert(&e, bytes);
	} else {
		e.bytes = (uint32_t)bytes;
		extent_read(&e, dst, data, NULL, bytes);
		store_parts(dst, data, bytes, KNOWN);
	}
	pthread_mutex_unlock(&lock);
}
