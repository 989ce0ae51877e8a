/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs Python source in a process that was started without us. A thread of the target is stopped
 * for well under a millisecond, at a moment when it holds no lock of the C library, and starts
 * another thread there; that one waits for the interpreter's lock as any thread does, runs the
 * source, and ends. All others run on meanwhile.
 */
#pragma once

#include "../base/usual.h"

#include <sys/types.h>

enum { ATTACH_WHY = 320 };

/* Whether this process may be looked into; else `why` is the sentence. */
bool attach_allowed(pid_t pid, char why[ATTACH_WHY]);

bool attach_lives(pid_t pid);

/* Starts the thread; `seconds`: how long to look for a moment to do so. */
bool attach_start(pid_t pid, const char *source, double seconds, char why[ATTACH_WHY]);
