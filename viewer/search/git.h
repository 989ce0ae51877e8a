/* SPDX-License-Identifier: Apache-2.0 */
/* Asks git: a command, and what it prints. */
#ifndef VIEWER_GIT_H
#define VIEWER_GIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* In that folder (NULL: this one); words: up to a NULL. What it printed, without the last end of
 * line, to be freed; NULL: it failed, and *why (if asked for, to be freed) is its last line. */
char *git_ask(const char *folder, char **why, const char *const *words);
#define GIT_ASK(folder, why, ...) git_ask(folder, why, (const char *const[]){ __VA_ARGS__, NULL })
/* The same into a text that has room; "" if it failed. */
bool git_into(const char *folder, char *into, size_t room, const char *const *words);
#define GIT_INTO(folder, into, ...) \
	git_into(folder, into, sizeof(into), (const char *const[]){ __VA_ARGS__, NULL })
bool git_does(const char *folder, const char *const *words);
#define GIT_DOES(folder, ...) git_does(folder, (const char *const[]){ __VA_ARGS__, NULL })

/* A program in a process group of its own, both its outputs as one text (to be freed). Its exit
 * code, 128 + n if a signal ended it. Who is interrupted ends it by git_interrupt. */
int git_run_program(const char *folder, const char *const *argv, char **text);
void git_interrupt(int signal);

#endif
