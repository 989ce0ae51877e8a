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

/* Our own walk, from the hook's frame if it is known; NULL = use libunwind. */
struct walk *native_by_frames(struct frames *f, const struct binding *binding, const void *from);

/*
 * Fills `out`, innermost first. Our own library's frames come first: *skip is their number. Returns
 * the number of the others. `most` counts both.
 */
int native_by_libunwind(uintptr_t *out, int most, int *skip);

#ifdef GMT_CHECK_FRAMES
void native_compare(const struct walk *w); /* tests/check/compare_walks.c */
#endif
