/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's Python frames, read from the interpreter's own structures without the GIL: a
 * thread's frame chain changes only by that thread's own doing, and frames keep their code alive.
 */
#pragma once

#include "../base/os.h"
#include "../base/binding.h"
#include "python_offsets.h"

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_MOST 1024 /* most frames that are looked at */

#define PYTHON_CODES \
	2048 /* most code objects that a thread knows; more than frames that are looked at */

/* A code object as the thread's walks found it. Each walk compares it once, so that a new one at
 * the address of a freed one is noticed. */
struct python_code {
	uintptr_t code; /* its address; PYTHON_GONE = another one is there */
	uint64_t check; /* differs from that of a later one at the address */
	uint64_t seen;	/* number of the last walk that found it unchanged */

	/* what identifies it, if it has no version */
	uintptr_t name, file, table;
	uint64_t name_hash;
	uint32_t version, first_line;
};

#define PYTHON_GONE 1

struct python_frame {
	uintptr_t at; /* the frame; bit 0: entered from C */
	uintptr_t instruction;
	struct python_code *code;
	uint32_t where; /* lasti in bytes << 1 | entered from C */
};

struct python_codes {
	uint32_t count;
	uint16_t by_address[2 * PYTHON_CODES];		/* number + 1, or 0 */
	struct python_code codes[PYTHON_CODES] OS_LINE; /* a cache line each */
};

/* A thread's frames in its last walk, outermost first. Zeroed memory is a new one. */
struct python_chain {
	int count, kept;  /* kept: number of outer frames that did not change */
	uint64_t walk;	  /* the number of this walk */
	uint64_t binding; /* called by the innermost frame; 0 = none is known */
	struct python_frame frames[PYTHON_MOST] OS_LINE;
	uintptr_t at[PYTHON_MOST]; /* those that are not kept, innermost first */
	struct python_codes known;
};

/* Looks for an interpreter in the process: in the constructor among what the program was linked
 * with, later, on the drain's thread only, everywhere. */
void python_find(bool everywhere);

/* NULL, or why there are no Python stacks. */
const char *python_trouble(void);
/* "3.11", or NULL if there is no Python. */
const char *python_version(void);

/* Walks the thread's frames. Returns their number; -1: this thread has no Python. */
int python_walk(struct python_chain *c, const struct binding *binding);

#ifdef GMT_CHECK_FRAMES
void python_compare(bool same); /* tests/check/compare_walks.c */
#endif

/* Whether the address is in the interpreter's own object, whose memory is never reused. */
bool python_is_static(uintptr_t address);

/* Types by the addresses of their objects; a cell is a variable that inner functions use too. */
enum python_type { PYTHON_CELL, PYTHON_LIST, PYTHON_TUPLE, PYTHON_DICT, PYTHON_TYPES };
uintptr_t python_type(enum python_type type);

/* The calling thread's state in the interpreter, which may be read; 0: it has none. */
uintptr_t python_thread(void);

/* The offsets in use; valid once python_walk gave frames. */
const struct python_offsets *python_layout(void);
