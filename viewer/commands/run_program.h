/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a program file that matter for the preload. */
#pragma once

#include "../base/usual.h"

/* Where a shell finds the program; false: nowhere in the PATH. */
bool run_program_path(const char *name, char path[PATH_MAX]);

/* Whether the loader would ignore the preload for this program (a name as in a shell); if so, why,
 * as a sentence. */
bool run_program_obstacle(const char *name, char *text, size_t room);

/* Whether it cannot be started, or would not be recorded; if so, why, as a sentence. */
bool run_program_fails(const char *name, char *text, size_t room);

/* "train.py" that is not executable is run by Python: $GPUMEMTRACE_PYTHON, else python3. Returns
 * command or a new one. */
char **run_program_python(char **command);

/* Starts a program, passes signals on to it, waits for it. */

/* Runs a program and returns a shell's exit code: the program's own, 128 + n if signal n ended it,
 * 127 or 126 (after an error message) if it could not be started. Calls `watch` every second. */
int child_run(char **argv, void (*watch)(void *ctx), void *ctx);
int child_signal(void); /* that ended it; 0 = it ended by itself */
