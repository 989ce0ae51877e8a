/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc for the module. The compiler's malloc rounds up to powers of two and grows in steps of 64
 * KiB, each of which starts the browser's garbage collector: a snapshot of 200 MB took 2 GB and ten
 * times as long. Here chunks are adjacent, each stores the size of the one before it, and free
 * chunks are in lists by size. Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE   65536u
#define STEP   64u /* fewest pages to get from the browser at once */
#define MOST   (UINT32_MAX - 8 * PAGE)
#define HEAD   8u
#define LEAST  32u
#define USED   1u
#define EXACT  64 /* lists for a single size each, 16 bytes apart */
#define LISTS  (EXACT + 8 * 22)
#define WORDS  (LISTS / 64 + 1)
#define NEARBY 16 /* most chunks of a list that a search visits */

struct chunk {
	uint32_t before;	   /* bytes of the chunk before it, 0 = none */
	uint32_t size;		   /* bytes | USED */
	struct chunk *next, *last; /* neighbours in its list, if it is free */
};

extern char __heap_base;

static struct chunk *lists[LISTS];
static uint64_t filled[WORDS];	       /* a bit for each list, set if it has chunks */
static struct chunk *end;	       /* after the last chunk; USED, with 0 bytes */
static char *written, *written_before; /* end of written memory; before the last malloc */

static uint32_t chunk_bytes(const struct chunk *c)
{
	return c->size & ~USED;
}

static struct chunk *chunk_at(struct chunk *c, uint32_t bytes)
{
	return (struct chunk *)((char *)c + bytes);
}

static struct chunk *chunk_of(void *p)
{
	return (struct chunk *)((char *)p - HEAD);
}

/* The list for chunks of a size: one size each, then eight lists for each power of two. */
static unsigned list_of(uint32_t size)
{
	unsigned top = 31u - (unsigned)__builtin_clz(size);

	return size < 16 * EXACT ? size / 16 : EXACT + 8 * (top - 10) + (size >> (top - 3) & 7);
}

static void chunk_set(struct chunk *c, uint32_t bytes, uint32_t used)
{
	c->size = bytes | used;
	chunk_at(c, bytes)->before = bytes;
}

/* Notes that memory up to c, with the head of c, may have been written. */
static void touch(const struct chunk *c)
{
	if (written < (const char *)c + HEAD)
		written = (char *)c + HEAD;
}

static void list_add(struct chunk *c)
{
	struct chunk **list = &lists[list_of(c->size)];

	c->next = *list;
	c->last = NULL;
	if (*list)
		(*list)->last = c;
	*list = c;
	filled[list_of(c->size) / 64] |= 1ull << list_of(c->size) % 64;
	touch(c + 1);
}

static void list_remove(struct chunk *c)
{
	if (c->last)
		c->last->next = c->next;
	else
		lists[list_of(c->size)] = c->next;
	if (c->next)
		c->next->last = c->last;
	if (!lists[list_of(c->size)])
		filled[list_of(c->size) / 64] &= ~(1ull << list_of(c->size) % 64);
}

/* Frees a chunk, joined with its free neighbours. */
static void chunk_release(struct chunk *c)
{
	uint32_t bytes = chunk_bytes(c);
	struct chunk *next = chunk_at(c, bytes), *last = chunk_at(c, -c->before);

	if (!(next->size & USED)) {
		list_remove(next);
		bytes += next->size;
	}
	if (c->before && !(last->size & USED)) {
		list_remove(last);
		bytes += last->size;
		c = last;
	}
	chunk_set(c, bytes, 0);
	list_add(c);
}

/* Shortens a used chunk and frees the rest. */
static void chunk_cut(struct chunk *c, uint32_t bytes)
{
	uint32_t rest = chunk_bytes(c) - bytes;

	if (rest < LEAST)
		return;
	chunk_set(c, bytes, USED);
	chunk_set(chunk_at(c, bytes), rest, USED);
	chunk_release(chunk_at(c, bytes));
}

/* Makes a free chunk of at least that many bytes at the end of memory. False: out of memory. */
static bool heap_grow(uint32_t bytes)
{
	uint32_t have = (uint32_t)__builtin_wasm_memory_size(0), pages = bytes / PAGE + 2;
	uint32_t more = have / 8 < STEP ? STEP : have / 8;
	struct chunk *c = end;

	if (__builtin_wasm_memory_grow(0, pages + more) != SIZE_MAX)
		pages += more;
	else if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX)
		return false;
	end = (struct chunk *)(uintptr_t)((uint64_t)(have + pages) * PAGE - HEAD);
	end->size = USED;
	chunk_set(c, (uint32_t)((char *)end - (char *)c), USED);
	touch(c + 1);
	chunk_release(c);
	return true;
}

/* Starts the heap after the program's data, so that payloads are at multiples of 16. */
static void heap_begin(void)
{
	uintptr_t at = ((uintptr_t)&__heap_base + 15 & ~(uintptr_t)15) + HEAD;

	while (at + HEAD > __builtin_wasm_memory_size(0) * PAGE)
		__builtin_wasm_memory_grow(0, 1);
	end = (struct chunk *)at;
	*(uint64_t *)end = (uint64_t)USED << 32;
	touch(end);
}

static struct chunk *list_find(uint32_t bytes)
{
	unsigned list = list_of(bytes), word = (list + 1) / 64;
	struct chunk *c = lists[list];
	uint64_t larger = filled[word] & UINT64_MAX << (list + 1) % 64;

	for (int i = 0; c && c->size < bytes; i++)
		c = i < NEARBY ? c->next : NULL;
	while (!c && !larger && ++word < WORDS)
		larger = filled[word];
	return c || !larger ? c : lists[64 * word + (unsigned)__builtin_ctzll(larger)];
}

void *malloc(size_t n)
{
	uint32_t bytes = n < LEAST - HEAD ? LEAST : ((uint32_t)n + HEAD + 15) & ~15u;
	struct chunk *c = NULL;

	if (!end)
		heap_begin();
	if (n < MOST && !(c = list_find(bytes)) && heap_grow(bytes))
		c = list_find(bytes);
	if (!c) {
		errno = ENOMEM;
		return NULL;
	}
	list_remove(c);
	chunk_set(c, c->size, USED);
	written_before = written;
	touch(chunk_at(c, bytes));
	chunk_cut(c, bytes);
	return (char *)c + HEAD;
}

void free(void *p)
{
	if (p)
		chunk_release(chunk_of(p));
}

/* Clears only what was written before, because new pages are zero. */
void *calloc(size_t count, size_t each)
{
	size_t n;
	char *p = __builtin_mul_overflow(count, each, &n) ? malloc(SIZE_MAX) : malloc(n);

	if (p && p < written_before)
		memset(p, 0, (size_t)(written_before - p) < n ? (size_t)(written_before - p) : n);
	return p;
}

/* Extends a used chunk in place, if the memory after it is free. */
static bool chunk_stretch(struct chunk *c, uint32_t bytes)
{
	struct chunk *next = chunk_at(c, chunk_bytes(c));
	bool is_last = next == end || (!(next->size & USED) && chunk_at(next, next->size) == end);

	if (is_last && chunk_bytes(c) >= PAGE &&
	    (next == end || chunk_bytes(c) + next->size < bytes))
		heap_grow(bytes - chunk_bytes(c));
	next = chunk_at(c, chunk_bytes(c));
	if (next->size & USED || chunk_bytes(c) + next->size < bytes)
		return false;
	list_remove(next);
	chunk_set(c, chunk_bytes(c) + next->size, USED);
	touch(chunk_at(c, bytes));
	chunk_cut(c, bytes);
	return true;
}

void *realloc(void *p, size_t n)
{
	uint32_t bytes = n < LEAST - HEAD ? LEAST : ((uint32_t)n + HEAD + 15) & ~15u;
	struct chunk *c = chunk_of(p);
	void *copy;

	if (!p || n >= MOST)
		return malloc(n); /* NULL for one that is too large */
	if (bytes <= chunk_bytes(c) ? (chunk_cut(c, bytes), true) : chunk_stretch(c, bytes))
		return p;
	copy = malloc(n);
	if (copy) {
		memcpy(copy, p, chunk_bytes(c) - HEAD < n ? chunk_bytes(c) - HEAD : n);
		free(p);
	}
	return copy;
}

void *reallocarray(void *p, size_t count, size_t each)
{
	size_t n;

	return realloc(p, __builtin_mul_overflow(count, each, &n) ? SIZE_MAX : n);
}

/* Allocates a larger chunk, and frees the part before the aligned address. */
void *aligned_alloc(size_t alignment, size_t n)
{
	char *p = n < MOST - alignment ? malloc(n + alignment + LEAST) : NULL, *at = p;
	struct chunk *c = chunk_of(p);
	uint32_t before;

	if (!p || (uintptr_t)p % alignment == 0)
		return p;
	at = (char *)(((uintptr_t)p + LEAST + alignment - 1) & ~(alignment - 1));
	before = (uint32_t)(at - p);
	chunk_set(chunk_of(at), chunk_bytes(c) - before, USED);
	chunk_set(c, before, USED);
	free(p);
	return at;
}
