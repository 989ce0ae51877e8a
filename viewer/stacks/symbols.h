/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the traced process -> functions, files, lines. The recording says which object lay
 * where and its build-id; the names come from the file on this machine's disk, if it is the same
 * one.
 */
#ifndef VIEWER_SYMBOLS_H
#define VIEWER_SYMBOLS_H

#include "defs.h"

struct symbols;

/* All texts live as long as the table; "" where nothing is known. */
struct symbol {
	const char *function; /* demangled */
	const char *raw;      /* as the object spells it */
	const char *module;   /* path of the object */
	const char *file;     /* this and the line: only after symbols_place */
	unsigned line;
	uint64_t offset; /* of the address in the object's file, for where there is no name */
};

struct symbols *symbols_new(const struct defs *defs);
void symbols_free(struct symbols *s);

/* ip: the address of a call's return, so what is looked up is the byte before it. seq: of an event
 * whose stack this is (an address may have belonged to another object before). */
const struct symbol *symbols_find(struct symbols *s, uint64_t ip, uint64_t seq);

/* Looks up the file and the line, too; returns what it was given. */
const struct symbol *symbols_place(const struct symbol *symbol);

/* Only the object, without opening any file; NULL if none is known. */
const struct defs_module *symbols_module(const struct symbols *s, uint64_t ip, uint64_t seq);

#endif
