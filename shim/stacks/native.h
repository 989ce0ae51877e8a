/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native return addresses of the calling thread.
 */
#pragma once

#include "frames.h"

/* In the constructor: loading a library later would take the loader's lock on the hook path. */
void native_setup(void);

/* NULL, or why there are no native stacks. */
const char *native_trouble(void);

/* By our own walk, from the hook's frame if it is known; NULL = ask libunwind. */
struct walk *native_by_frames(struct frames *f, const struct binding *binding, const void *from);

/*
 * Fills out (innermost first, our own library's frames left out) and returns how many; *skip says
 * where in out the first of them stands. most counts our own frames too.
 */
int native_by_libunwind(uintptr_t *out, int most, int *skip);

#ifdef GMT_CHECK_FRAMES
void native_compare(const struct walk *w); /* tests/check/compare_walks.c */
#endif
