/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and sorting for the reader, supplied by the program that uses it. The tool uses the C
 * library's (reader_memory.c). The library in the traced program has its own
 * (shim/recording/thin_memory.c), because there a fork may happen while another thread holds the
 * heap's lock.
 */
#pragma once

#include <stddef.h>

/* Like realloc: NULL, or memory of that size with the old contents; 0 bytes = free it. */
void *reader_memory(void *p, size_t bytes);

/* Like qsort, but the order of equal elements is unspecified. */
void reader_sort(void *array, size_t count, size_t size,
		 int (*compare)(const void *, const void *));
