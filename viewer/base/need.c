/* SPDX-License-Identifier: Apache-2.0 */
#include "need.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "say.h"

static void *check(void *p)
{
	if (!p)
		exit(say_error(EXIT_UNREADABLE, "out of memory"));
	return p;
}

void *need_new(size_t bytes)
{
	return check(calloc(1, bytes ? bytes : 1));
}

char *need_copy(const void *bytes, size_t len)
{
	char *copy = check(malloc(len + 1));

	if (len)
		memcpy(copy, bytes, len);
	copy[len] = 0;
	return copy;
}

void *need_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return check(p == MAP_FAILED ? NULL : p);
}

void *need_resize(void *v, size_t bytes)
{
	return check(realloc(v, bytes));
}

FILE *need_stream(char **text, size_t *len)
{
	return check(open_memstream(text, len));
}

size_t need_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

void *need_grow(void *v, size_t *room, size_t count, size_t each)
{
	if (count < *room)
		return v;
	*room = *room ? *room * 2 : 16;
	return check(reallocarray(v, *room, each));
}
