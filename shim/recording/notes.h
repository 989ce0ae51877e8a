/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes for the `gpumemtrace run` that started this process, if one did.
 */
#pragma once

#include <stdbool.h>

void notes_setup(bool enabled); /* in the constructor: counts this program */
void notes_begun(const char *path);
void notes_failed(const char *path, int error);
void notes_refused(void); /* any thread: a request for device memory failed */
