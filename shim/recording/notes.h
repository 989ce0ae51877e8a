/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process notes for the `gpumemtrace run` that it runs under, if it does.
 */
#pragma once

#include <stdbool.h>

void notes_setup(bool enabled); /* in the constructor: the library is loaded here */
void notes_begun(const char *path);
void notes_failed(const char *path, int error);
void notes_refused(void); /* any thread: memory of a device */
