/* SPDX-License-Identifier: Apache-2.0 */
/* What a program file says about being preloaded into. */
#ifndef VIEWER_RUN_PROGRAM_H
#define VIEWER_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Why it cannot be started at all: a sentence; false: it can be. */
bool run_program_missing(const char *name, char *text, size_t room);

/* Why the loader takes no library into this program (a name as in a shell): a sentence; false: the
 * file gives no reason. */
bool run_program_obstacle(const char *name, char *text, size_t room);

/* "train.py" that is no executable file is run by Python: $GPUMEMTRACE_PYTHON, else python3.
 * Returns command or a new one. */
char **run_program_python(char **command);

#endif
