/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of one process: its start at the first event, its end, and what a fork makes of it.
 */
#ifndef GMT_SESSION_H
#define GMT_SESSION_H

#include "../rings/state.h"

/* Starts the session, or waits a moment for the thread that is starting it. true = it is on. */
bool session_begin(void);

/* The process ends: everything into the file, then off. */
void session_end(void);

/* In a forked child: all that belongs to the parent is forgotten. `at_once`: nothing but the fork
 * has happened in the child, so that file descriptors still are what they were. */
void session_fork_child(bool at_once);

#endif
