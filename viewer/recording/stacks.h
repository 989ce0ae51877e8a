/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts stack ids to frames as people know them: Python frames in place of the interpreter's own
 * C frames, innermost first.
 */
#pragma once

#include "../base/ending.h"
#include "defs.h"
#include "symbols.h"

#define STACKS_DEPTH 4096 /* longer chains, and damaged ones that run in a circle, are cut */

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

/* Fills s->frames. seq: number of an event with that stack, UINT64_MAX if none is known. */
void stacks_read(struct stacks *s, uint32_t id, uint64_t seq);
/* The same without files and lines of native functions, because unpacking DWARF is slow. */
void stacks_read_names(struct stacks *s, uint32_t id, uint64_t seq);
/* Only the Python frames, or only the native ones without names (module and ip): cheap. */
void stacks_read_python(struct stacks *s, uint32_t id);
void stacks_read_native(struct stacks *s, uint32_t id, uint64_t seq);
/* The innermost Python frame whose file or function has one of these words in it; NULL: none. */
const struct frame *stacks_in_file(struct stacks *s, uint32_t id, const char *const *words);
const struct frame *stacks_in_function(struct stacks *s, uint32_t id, const char *const *words);
/* Whether a native function with `part` in its name is on the stack, inside all Python frames. */
bool stacks_have(struct stacks *s, uint32_t id, uint64_t seq, const char *part);
