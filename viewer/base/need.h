/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that does not return without memory: the command reports the error and ends with exit
 * code 3 (in the library, the question ends). Only the viewer can do that. Nothing here runs inside
 * a traced program.
 */
#pragma once

#include "usual.h"

void *need_new(size_t bytes);			/* zeroed */
char *need_copy(const void *bytes, size_t len); /* with a terminating zero */
char *need_text(const char *text);		/* a copy; of "" if NULL */
void *need_pages(size_t bytes); /* zeroed, to be freed by munmap; untouched pages take no memory */
void *need_resize(void *v, size_t bytes);    /* not zeroed */
FILE *need_stream(char **text, size_t *len); /* as open_memstream; fclose sets both */

/* The number of items in a list that ends with NULL; 0 if list is NULL. */
size_t need_count(char *const *list);

/* Makes room for count + 1 elements of `each` bytes in v; returns v, which might have moved. */
void *need_grow(void *v, size_t *room, size_t count, size_t each);
/* Appends an element, not initialized, to v; returns its address. */
#define need_item(v, count, room) \
	((v) = need_grow(v, &(room), count, sizeof(*(v))), &(v)[(count)++])

/* text_put prints a text in the manner of printf, text_add appends one to the text that is there.
 * Both cut it to fit into `room` bytes, and return true. */
bool text_put(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool text_add(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
