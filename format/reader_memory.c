/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's memory in the tool: the C library's heap. The library in the traced program does not
 * contain this file.
 */
#include "reader_memory.h"

#include <stdlib.h>

void *reader_memory(void *p, size_t bytes)
{
	if (bytes)
		return realloc(p, bytes);
	free(p);
	return NULL;
}

void reader_sort(void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	qsort(array, count, size, compare);
}
