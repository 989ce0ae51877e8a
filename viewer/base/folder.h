/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a command's own, which goes with it. */
#pragma once

#include "usual.h"

/* A new one whose name has that word. 0, or an exit code after one error message. */
int folder_make(char path[PATH_MAX], const char *word);
void folder_remove(const char *path); /* and the files in it */
