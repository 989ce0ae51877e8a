/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one object by address. A library's table has about 100,000 of them, and a recording
 * needs a few hundred. So the table stays in the file, and only the numbers of its functions are
 * distributed to pages of addresses. A page is sorted when an address in it is first looked up.
 */
#ifndef VIEWER_FUNCTIONS_H
#define VIEWER_FUNCTIONS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Symbols of an ELF file, in its own memory. */
struct symbol_table {
	Elf *elf;
	const Elf64_Sym *symbols;
	size_t count;
	size_t names; /* the section with their names */
};

struct functions {
	struct symbol_table table;
	size_t count;
	uint32_t *numbers; /* of functions in the table, by page */
	uint64_t low;	   /* the lowest start */
	unsigned shift;	   /* log2 of a page's bytes */
	size_t pages;	   /* 0: not dealt out yet */
	uint32_t *firsts;  /* of each page, and one more: the count */
	bool *sorted;
};

/* False: there is no function in the table, and another one may be tried. */
bool functions_deal(struct functions *f, const struct symbol_table *table);
void functions_free(struct functions *f);

const char *functions_name(struct functions *f, uint64_t address); /* NULL = unknown */

#endif
