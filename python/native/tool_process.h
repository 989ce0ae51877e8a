/* SPDX-License-Identifier: Apache-2.0 */
/* The tool as a child process: its standard output is read, its standard error kept. */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0: there is none, or no more */
	int out, err;
};

/* 0 or an errno. */
int child_start(struct child *c, const char *path, char *const argv[], char *const envp[]);

/* Waits for its end. Its exit code, 128 + the signal that ended it, -1 if that is not known. What
 * it said goes into text. */
int child_end(struct child *c, char *text, size_t room);

void child_kill(struct child *c); /* nobody reads it any more */

#endif
