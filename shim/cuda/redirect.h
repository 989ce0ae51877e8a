/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a program looks up by name at run time: our hook in place of what was found, when
 * it is a function that we hook, with the very parameters that our hook has.
 */
#pragma once

#include <stdint.h>

/*
 * What a program that asked the driver for `name` and was given `real` is to get: our hook of this
 * very function, or `real` itself for everything that is not hooked, and for every form of a hooked
 * function that hooks.def has no row for. `version` is only noted.
 */
void *redirect_entry(const char *name, int version, void *real);

/* The same for a symbol found by dlsym, whoever asks from `caller`. */
void *redirect_symbol(const char *symbol, void *real, const void *caller);

/* Is it one of our hooks' symbols of CUDA or cuDNN? */
int redirect_knows(const char *symbol);
