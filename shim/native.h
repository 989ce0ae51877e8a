/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native return addresses of the calling thread, by libunwind's fast path (about 9 ns a frame).
 */
#ifndef GMT_NATIVE_H
#define GMT_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

/* In the constructor: loading a library later would take the loader's lock on the hook path. */
void native_setup(void);

/* NULL, or why there are no native stacks. */
const char *native_trouble(void);

/*
 * Fills out (innermost first, our own library's frames left out) and returns how many; *skip says
 * where in out the first of them stands. most counts our own frames too.
 */
int native_walk(uintptr_t *out, int most, int *skip);

#endif
