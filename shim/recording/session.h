/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of one process: its start at the first event, its end, and what a fork makes of it.
 */
#pragma once

#include "../rings/state.h"

/* Starts the session, or waits a moment for the thread that is starting it. true = it is on; false:
 * the event that begins it cannot be recorded, which is counted. */
bool session_begin(void);
bool session_is_starting(void);

void session_claim(void); /* at load: this process is the one that may end a recording */

/* The process ends by exit: everything into the file, then off. */
void session_end(void);

/* The process is about to be left without exit, perhaps from a signal handler or by one of many
 * threads: the same, within two seconds, and nothing of the sources is called. true = the recording
 * is whole. Does nothing in a process that records nothing, or that shares the memory of the one
 * that does. */
bool session_leave(void);
bool session_is_here(void); /* this process, not one that shares its memory, is recording */

/* In a forked child: all that belongs to the parent is forgotten. `at_once`: nothing but the fork
 * has happened in the child, so that file descriptors still are what they were. */
void session_fork_child(bool at_once);
