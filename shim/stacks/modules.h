/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of loaded objects: defined before an address inside one is first used in a stack.
 */
#pragma once

#include "cfi.h"
#include "../rings/thread.h"

/* On an application thread: defines the module of `ip`, if it is in any. */
void modules_know(uintptr_t ip);

/* The same, and returns the module's call frame information; NULL = it is in none. */
const struct cfi_table *modules_table(uintptr_t ip);

/*
 * Grows with every unload, which voids everything learned about addresses in objects. *now: an
 * unload is in progress. Our dlclose calls the next two before and after the real one; unloads in
 * other ways are noticed at the next look at the loader's list.
 */
uint64_t modules_unloads(bool *now);
void modules_unload_begins(void);
void modules_unload_ends(void);
void modules_unload_reset(void); /* in a forked child: the unloading thread is not in it */

/* The thread that writes the file: defines what is loaded now and not yet defined. */
void modules_update(bool (*emit)(const struct gmt_def *d));
bool modules_have_python(void); /* a libpython was among them */
void modules_forget(void);
