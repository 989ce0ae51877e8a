/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader asks of its program: memory and sorting. In the tool they are the C library's
 * (reader_memory.c). The library in the traced program has its own (shim/recording/thin_memory.c):
 * there a fork may come while the heap's lock is held by whoever reads.
 */
#ifndef GMT_READER_MEMORY_H
#define GMT_READER_MEMORY_H

#include <stddef.h>

/* As realloc: NULL or what is there, with room for so many bytes, its contents kept; 0 = give it
 * back. */
void *reader_memory(void *p, size_t bytes);

/* As qsort, but equal ones in any order. */
void reader_sort(void *array, size_t count, size_t size,
		 int (*compare)(const void *, const void *));

#endif
