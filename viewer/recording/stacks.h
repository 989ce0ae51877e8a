/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack ids -> frames as people know them: Python frames in place of the interpreter's own C
 * frames, innermost first.
 */
#pragma once

#include "../base/ending.h"
#include "defs.h"
#include "symbols.h"

#define STACKS_DEPTH \
	4096 /* a chain longer than that is cut (or a damaged one that runs in a circle) */

struct frame {
	bool python;
	const char *function; /* "" if unknown */
	const char *file;     /* source file, "" if unknown */
	const char *module;   /* native: path of the object */
	unsigned line;	      /* 0 if unknown */
	unsigned first_line;  /* Python: where the function begins */
	uint64_t ip, offset;  /* native */
};

struct stacks {
	const struct defs *defs;
	struct symbols *symbols;
	struct frame *frames; /* of the latest stack, innermost first */
	size_t count, room;
	uint64_t *native, *python; /* chains of the latest stack */
	size_t native_count, native_room, python_count, python_room;
};

void stacks_init(struct stacks *s, const struct defs *defs, struct symbols *symbols);
void stacks_free(struct stacks *s);

/* Fills s->frames. seq: of an event with that stack, UINT64_MAX if none is at hand. */
void stacks_read(struct stacks *s, uint32_t id, uint64_t seq);
/* Without files and lines of native functions, for which a library's DWARF is unpacked. */
void stacks_read_names(struct stacks *s, uint32_t id, uint64_t seq);
/* Only the Python frames, or only the native ones without names (module and ip): cheap. */
void stacks_read_python(struct stacks *s, uint32_t id);
void stacks_read_native(struct stacks *s, uint32_t id, uint64_t seq);
/* The innermost Python frame whose file or function has one of these words in it; NULL: none. */
const struct frame *stacks_in_file(struct stacks *s, uint32_t id, const char *const *words);
const struct frame *stacks_in_function(struct stacks *s, uint32_t id, const char *const *words);
/* A native function with that in its name called the allocator, without Python between them. */
bool stacks_have(struct stacks *s, uint32_t id, uint64_t seq, const char *part);
