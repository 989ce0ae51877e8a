/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a search: the one that the user named, or one of its own that goes with it. */
#ifndef VIEWER_FOLDER_H
#define VIEWER_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/* `path` empty: a new one whose name has that word; it goes with folder_remove. 0, or a sentence
 * was said and the exit code. */
int folder_make(char path[PATH_MAX], const char *word, bool *temporary);
void folder_remove(const char *path); /* and the files in it */

#endif
