/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program, passes signals on to it, waits for it. */
#ifndef VIEWER_CHILD_H
#define VIEWER_CHILD_H

/* What a shell would return: its exit code, 128 + n if signal n ended it, 127 or 126 (and a
 * sentence) if it could not be started. */
int child_run(char **argv);
int child_signal(void); /* that ended it; 0 = it ended by itself */

#endif
