/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the parts of this tool that are written in Python, which it carries inside it. They need
 * the standard library only, and read no settings or packages of the user (-I -S). */
#ifndef VIEWER_INTERPRETER_H
#define VIEWER_INTERPRETER_H

#include <sys/types.h>

#define PYTHON_LEAST "3.9"

/* Returns the first of GPUMEMTRACE_PYTHON, python3, python and `last` (may be NULL) that starts and
 * is Python PYTHON_LEAST or later; NULL: none. */
const char *python_find(const char *last);

/* Starts it with the text of a program and its arguments (ending with NULL), which ends with this
 * process. *out reads its standard output; its errors go to `err`. Returns -1 if it cannot. */
pid_t python_start(const char *python, const char *program, const char *const *args, int *out,
		   int err);

#endif
