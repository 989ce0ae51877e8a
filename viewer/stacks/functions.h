/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one object by address. A library has some 100,000 of them and a recording asks for
 * a few hundred addresses, so they are only dealt out to pages of addresses; a page is put in order
 * when somebody asks for an address in it.
 */
#ifndef VIEWER_FUNCTIONS_H
#define VIEWER_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function {
	uint64_t start, end; /* equal: it reaches to the next one */
	const char *name;    /* in its owner's memory */
};

struct functions {
	struct function *items;
	size_t count, room;
	uint64_t low;	  /* the lowest start */
	unsigned shift;	  /* log2 of a page's bytes */
	size_t pages;	  /* 0: not dealt out yet */
	uint32_t *firsts; /* of each page, and one more: the count */
	bool *sorted;
};

void functions_add(struct functions *f, struct function one);
void functions_deal(struct functions *f); /* after the last one was added */
void functions_free(struct functions *f);

const char *functions_name(struct functions *f, uint64_t address); /* NULL = unknown */

#endif
