/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is there, or the command says so and ends with 3 (the library: the question does).
 * Only the viewer may do that; nothing here ever runs inside a traced program.
 */
#pragma once

#include "usual.h"

void *need_new(size_t bytes);			/* zeroed */
char *need_copy(const void *bytes, size_t len); /* with a terminating zero */
char *need_text(const char *text);		/* a copy; NULL: of "" */
void *need_pages(size_t bytes); /* zeroed, for munmap; what is not written to takes none */
void *need_resize(void *v, size_t bytes);    /* not zeroed */
FILE *need_stream(char **text, size_t *len); /* as open_memstream; they are set by fclose */

/* How many there are in a list that ends with a NULL; NULL: none. */
size_t need_count(char *const *list);

/* Room for one more than count elements of `each` bytes in v; returns v, perhaps moved. */
void *need_grow(void *v, size_t *room, size_t count, size_t each);
/* The place of one more element of v. */
#define need_item(v, count, room) \
	((v) = need_grow(v, &(room), count, sizeof(*(v))), &(v)[(count)++])

/* A text in the manner of printf, cut where it does not fit; or put behind the text that is there.
 * Both return true. */
bool text_put(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool text_add(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
