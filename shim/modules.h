/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of loaded objects: defined before an address inside one is first used in a stack.
 */
#ifndef GMT_MODULES_H
#define GMT_MODULES_H

#include "thread.h"

/* Application thread: the module of `ip` is defined, if it is in any. */
void modules_know(uintptr_t ip);

/* The thread that writes the file: defines what is loaded now and not yet defined. */
void modules_update(bool (*emit)(const struct gmt_def *d));
bool modules_have_python(void); /* a libpython was among them */
void modules_forget(void);

#endif
