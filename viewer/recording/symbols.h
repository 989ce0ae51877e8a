/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps addresses of the traced process to functions, files, lines. The recording has the address
 * and the build-id of each object, and the names of functions that objects export. All other names
 * come from the object's file on this machine, if its build-id is the same.
 */
#pragma once

#include "defs.h"
#include "../base/usual.h"

struct symbols;

/* All strings live as long as the table; "" where unknown. */
struct symbol {
	const char *function; /* demangled */
	const char *raw;      /* as in the object's symbol table */
	const char *module;   /* path of the object */
	const char *file;     /* this and the line are set by symbols_place */
	unsigned line;
	uint64_t offset; /* of the address in the object's file, for addresses without a name */
};

struct symbols *symbols_new(const struct defs *defs);
void symbols_free(struct symbols *s);

/* ip: a return address, so the byte before it is looked up. seq: the event with this stack, because
 * the address might have belonged to another object before. */
const struct symbol *symbols_find(struct symbols *s, uint64_t ip, uint64_t seq);

/* Also looks up file and line; returns its argument. */
const struct symbol *symbols_place(const struct symbol *symbol);

/* The object alone, without opening a file; NULL if unknown. */
const struct defs_module *symbols_module(const struct symbols *s, uint64_t ip, uint64_t seq);

/* C++ names as they were written. */

/* A new string (free it), or NULL: not a C++ name, or no C++ library on this machine. */
char *demangle(const char *name);

/* The name for a narrow column, in buf: without parameters, template arguments as "<>". */
const char *demangle_brief(const char *name, char *buf, size_t room);

/* The functions of one ELF file by address, and its line numbers where it has debug information. */

struct elf_names;

/* NULL: no ELF file, or another build-id. Addresses are the ELF file's own. */
struct elf_names *elf_names_open(const char *path, const void *build_id, size_t len);
void elf_names_close(struct elf_names *n);

const char *elf_names_function(struct elf_names *n, uint64_t address); /* NULL = unknown */
const char *elf_names_line(struct elf_names *n, uint64_t address,
			   unsigned *line); /* file or NULL */
