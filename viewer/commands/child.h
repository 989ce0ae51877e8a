/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program, passes signals on to it, waits for it. */
#ifndef VIEWER_CHILD_H
#define VIEWER_CHILD_H

/* Runs a program and returns a shell's exit code: the program's own, 128 + n if signal n ended it,
 * 127 or 126 (after an error message) if it could not be started. */
int child_run(char **argv);
int child_signal(void); /* that ended it; 0 = it ended by itself */

#endif
