/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps large blocks of memory from run to run of a fuzzer: the sanitizer would map each anew,
 * which takes ten times longer than what is tested. Linked in the place of malloc and the others
 * (--wrap) of all objects of a target. A kept block is poisoned where it is free, and behind the
 * bytes that were asked for. One thread.
 *
 * wraps: malloc calloc realloc aligned_alloc free
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#define LARGE  (64u << 10)
#define SHOWN  4096u /* of a free block, at each end: all of it would take as long as mapping */
#define BLOCKS 64u
#define EDGE   64u /* before and behind a block */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void __wrap_free(void *p);

static struct kept {
	uint8_t *p;
	size_t room, bytes;
	bool used;
} kept[BLOCKS];
static unsigned count;

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:malloc_context_size=4:allocator_release_to_os_interval_ms=-1";
}

static struct kept *find(const void *p)
{
	for (unsigned i = 0; i < count; i++)
		if (kept[i].p == p)
			return &kept[i];
	return NULL;
}

static void hide(const struct kept *k)
{
	size_t shown = k->room < SHOWN ? k->room : SHOWN;

	ASAN_POISON_MEMORY_REGION(k->p, shown);
	ASAN_POISON_MEMORY_REGION(k->p + k->room - shown, shown);
}

static struct kept *free_one(size_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (!kept[i].used && kept[i].room >= bytes && kept[i].room / 2 <= bytes)
			return &kept[i];
	return NULL;
}

static struct kept *new_one(size_t bytes)
{
	size_t room = (bytes + EDGE - 1) / EDGE * EDGE;
	uint8_t *p = count < BLOCKS ? __real_aligned_alloc(EDGE, room + 2 * EDGE) : NULL;

	if (!p)
		return NULL;
	ASAN_POISON_MEMORY_REGION(p, EDGE);
	ASAN_POISON_MEMORY_REGION(p + EDGE + room, EDGE);
	kept[count] = (struct kept){ .p = p + EDGE, .room = room };
	return &kept[count++];
}

static void *take(size_t bytes)
{
	struct kept *k = free_one(bytes);

	if (!k)
		k = new_one(bytes);
	if (!k)
		return __real_malloc(bytes);
	k->used = true;
	k->bytes = bytes;
	ASAN_UNPOISON_MEMORY_REGION(k->p, k->room);
	ASAN_POISON_MEMORY_REGION(k->p + bytes, k->room - bytes);
	return k->p;
}

void *__wrap_malloc(size_t bytes)
{
	return bytes < LARGE ? __real_malloc(bytes) : take(bytes);
}

void *__wrap_calloc(size_t n, size_t each)
{
	uint8_t *p;

	if (each && n > SIZE_MAX / each)
		return NULL;
	if (n * each < LARGE)
		return __real_calloc(n, each);
	p = take(n * each);
	if (p)
		memset(p, 0, n * each);
	return p;
}

void *__wrap_realloc(void *p, size_t bytes)
{
	const struct kept *k = p ? find(p) : NULL;
	void *to;

	if (!k)
		return !p && bytes >= LARGE ? take(bytes) : __real_realloc(p, bytes);
	to = bytes ? __wrap_malloc(bytes) : NULL;
	if (to)
		memcpy(to, p, k->bytes < bytes ? k->bytes : bytes);
	if (to || !bytes)
		__wrap_free(p);
	return to;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return bytes < LARGE || align > EDGE ? __real_aligned_alloc(align, bytes) : take(bytes);
}

void __wrap_free(void *p)
{
	struct kept *k;

	if (!p)
		return;
	k = find(p);
	if (!k) {
		__real_free(p);
		return;
	}
	if (!k->used)
		abort(); /* freed twice */
	k->used = false;
	hide(k);
}
