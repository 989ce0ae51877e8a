/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a Python, and starts the parts of this tool that need its standard library only: the tool
 * carries them inside it, and they read no settings or packages of the user (-I -S). */
#ifndef VIEWER_INTERPRETER_H
#define VIEWER_INTERPRETER_H

#include <sys/types.h>

#define PYTHON_LEAST "3.9"

/* Where a Python is looked for, in order: GPUMEMTRACE_PYTHON if it is set, python3, python; then
 * NULL. */
const char *python_place(size_t i);

/* Returns the first of these, or else `last` (may be NULL), that starts and is Python PYTHON_LEAST
 * or later; NULL: none. */
const char *python_find(const char *last);

/* Starts it with the text of a program and its arguments (ending with NULL), which ends with this
 * process. *out reads its standard output; its errors go to `err`. Returns -1 if it cannot. */
pid_t python_start(const char *python, const char *program, const char *const *args, int *out,
		   int err);

#endif
