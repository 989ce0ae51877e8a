/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a program looks up by name at run time: gives our hook instead of the function
 * that was found, if we hook exactly that one, with the same parameters.
 */
#pragma once

#include <stdint.h>

/*
 * The function for a program that asked the driver for `name` and got `real`: our hook of this very
 * function, else `real` itself, also for a form of a hooked function without a row in hooks.def.
 * `version` is only noted.
 */
void *redirect_entry(const char *name, int version, void *real);

/* The same for a symbol that dlsym found. `caller`: an address in the object that asked. */
void *redirect_symbol(const char *symbol, void *real, const void *caller);

/* Whether it is a symbol of CUDA, cuDNN or NCCL that we hook. */
int redirect_knows(const char *symbol);
