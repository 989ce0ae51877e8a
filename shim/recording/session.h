/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of one process: its start at the first event, its end, and its reset after a fork.
 */
#pragma once

#include "../rings/state.h"

/* Starts the session, or waits a moment for the thread that is starting it. True: it is on. False:
 * the caller's event cannot be recorded. */
bool session_begin(void);
bool session_is_starting(void);

void session_claim(void); /* at load: this process is the one that may end a recording */

/* At exit: writes everything to the file, then switches recording off. */
void session_end(void);

/* The same before the process ends without exit, perhaps from a signal handler or by one of many
 * threads: within two seconds, and without calling the sources. True: the recording is whole. Does
 * nothing in a process that records nothing, or that shares the memory of the one that does. */
bool session_leave(void);
bool session_is_here(void); /* this process, not one that shares its memory, is recording */

/* In a forked child: forgets everything that belongs to the parent. `at_once`: the child has done
 * nothing since the fork, so its file descriptors are still those of the parent. */
void session_fork_child(bool at_once);
