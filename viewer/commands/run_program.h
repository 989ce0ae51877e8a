/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a program file that matter for the preload. */
#ifndef VIEWER_RUN_PROGRAM_H
#define VIEWER_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the loader would ignore the preload for this program (a name as in a shell); if so, why,
 * as a sentence. */
bool run_program_obstacle(const char *name, char *text, size_t room);

/* Whether it cannot be started, or would not be recorded; if so, why, as a sentence. */
bool run_program_fails(const char *name, char *text, size_t room);

/* "train.py" that is not executable is run by Python: $GPUMEMTRACE_PYTHON, else python3. Returns
 * command or a new one. */
char **run_program_python(char **command);

#endif
