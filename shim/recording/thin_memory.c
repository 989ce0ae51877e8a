/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's memory while a recording is thinned: pages of our own, and a sort in place. The
 * drain's thread only. Never the program's heap: if that allocator is not the C library's, a fork
 * at that moment would leave the child with a lock that is never released.
 */
#include "../../format/reader_memory.h"

#include "../base/os.h"

#include <string.h>

/* Precedes each allocation. */
struct head {
	size_t bytes; /* including the head */
} __attribute__((aligned(64)));

void *reader_memory(void *p, size_t bytes)
{
	struct head *before = p ? (struct head *)p - 1 : NULL, *room = NULL;

	if (bytes && bytes < SIZE_MAX / 2)
		room = os_map(sizeof(*room) + bytes);
	if (bytes && !room)
		return NULL;
	if (room)
		room->bytes = sizeof(*room) + bytes;
	if (room && before)
		memcpy(room + 1, p,
		       (before->bytes < room->bytes ? before->bytes : room->bytes) - sizeof(*room));
	if (before)
		os_unmap(before, before->bytes);
	return room ? room + 1 : NULL;
}

static void swap(char *a, char *b, size_t size)
{
	while (size--) {
		char c = *a;

		*a++ = *b;
		*b++ = c;
	}
}

/* Moves the element at `at` down, so that the greatest of its subtree is on top. */
static void sift(char *array, size_t at, size_t count, size_t size,
		 int (*compare)(const void *, const void *))
{
	size_t child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count &&
		    compare(array + child * size, array + (child + 1) * size) < 0)
			child++;
		if (compare(array + at * size, array + child * size) >= 0)
			return;
		swap(array + at * size, array + child * size, size);
		at = child;
	}
}

void reader_sort(void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	for (size_t at = count / 2; at-- > 0;)
		sift(array, at, count, size, compare);
	for (size_t left = count; left-- > 1;) {
		swap(array, (char *)array + left * size, size);
		sift(array, 0, left, size, compare);
	}
}
