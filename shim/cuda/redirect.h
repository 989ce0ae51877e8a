/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a program looks up by name at run time: our hook in place of what was found, when
 * it is a function that we hook, with the very parameters that our hook has.
 */
#ifndef GMT_REDIRECT_H
#define GMT_REDIRECT_H

#include <stdint.h>

/*
 * What a program that asked the driver for (name, version, flags) and was given `real` is to get.
 * `real` itself for everything that is not hooked, or has parameters newer than hooks.def.
 */
void *redirect_entry(const char *name, int version, uint64_t flags, void *real);

/* The same for a symbol found by dlsym, whoever asks from `caller`. */
void *redirect_symbol(const char *symbol, void *real, const void *caller);

/* Is it one of our CUDA hooks' symbols? */
int redirect_knows(const char *symbol);

#endif
