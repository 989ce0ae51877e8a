/* SPDX-License-Identifier: Apache-2.0 */
/* C++ names as they were written. */
#ifndef VIEWER_DEMANGLE_H
#define VIEWER_DEMANGLE_H

#include <stddef.h>

/* A new string (free it), or NULL: not a C++ name, or no C++ library on this machine. */
char *demangle(const char *name);

/* The name for a narrow column, in buf: no parameters, what stands in <> as "<>". */
const char *demangle_brief(const char *name, char *buf, size_t room);

#endif
