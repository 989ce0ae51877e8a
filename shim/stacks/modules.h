/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of loaded objects: defined before an address inside one is first used in a stack.
 */
#pragma once

#include "cfi.h"
#include "../rings/thread.h"

/* Application thread: the module of `ip` is defined, if it is in any. */
void modules_know(uintptr_t ip);

/* The same, and where the call frame information of that module is; NULL = it is in none. */
const struct cfi_table *modules_table(uintptr_t ip);

/*
 * Grows with every unloading: what was learned about addresses in objects is then void. *now: one
 * is going on. Called by our dlclose before and after the real one; unloadings that went past it
 * are seen at the next look at the loader's list.
 */
uint64_t modules_unloads(bool *now);
void modules_unload_begins(void);
void modules_unload_ends(void);
void modules_unload_reset(void); /* in a forked child: who was unloading is not in it */

/* The thread that writes the file: defines what is loaded now and not yet defined. */
void modules_update(bool (*emit)(const struct gmt_def *d));
bool modules_have_python(void); /* a libpython was among them */
void modules_forget(void);
