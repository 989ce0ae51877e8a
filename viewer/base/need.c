/* SPDX-License-Identifier: Apache-2.0 */
#include "need.h"

#include <sys/mman.h>
#include <sys/types.h>

#include "machine.h"

static void *check_memory(void *p)
{
	if (!p)
		machine_out_of_memory();
	return p;
}

void *need_new(size_t bytes)
{
	return check_memory(calloc(1, bytes ? bytes : 1));
}

char *need_copy(const void *bytes, size_t len)
{
	char *copy = check_memory(malloc(len + 1));

	if (len)
		memcpy(copy, bytes, len);
	copy[len] = 0;
	return copy;
}

char *need_text(const char *text)
{
	return need_copy(text, text ? strlen(text) : 0);
}

void *need_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return check_memory(p == MAP_FAILED ? NULL : p);
}

void *need_resize(void *v, size_t bytes)
{
	return check_memory(realloc(v, bytes));
}

/* Replaces open_memstream, which would also write to *text when the program ends, when the caller's
 * variable no longer exists. */
struct stream {
	char *text, **to;
	size_t len, room, *to_len;
};

static ssize_t write_stream(void *cookie, const char *bytes, size_t len)
{
	struct stream *s = cookie;
	size_t room = 2 * (s->len + len) + 64;

	if (s->len + len >= s->room) {
		char *more = room > s->len + len ? realloc(s->text, room) : NULL;

		if (!more) /* out of memory, or the size overflowed */
			return 0;
		s->text = more;
		s->room = room;
	}
	memcpy(s->text + s->len, bytes, len);
	s->len += len;
	return (ssize_t)len;
}

static int close_stream(void *cookie)
{
	struct stream *s = cookie;

	*s->to = s->text ? s->text : calloc(1, 1);
	*s->to_len = s->len;
	if (s->text)
		s->text[s->len] = 0;
	free(s);
	return 0;
}

FILE *need_stream(char **text, size_t *len)
{
	static const cookie_io_functions_t functions = { .write = write_stream,
							 .close = close_stream };
	struct stream *s = need_new(sizeof(*s));

	*s = (struct stream){ .to = text, .to_len = len };
	return check_memory(fopencookie(s, "w", functions));
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
	return check_memory(reallocarray(v, *room, each));
}

bool text_put(char *text, size_t room, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, room, format, args);
	va_end(args);
	return true;
}

bool text_add(char *text, size_t room, const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, room - n, format, args);
	va_end(args);
	return true;
}
