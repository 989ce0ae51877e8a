/* SPDX-License-Identifier: Apache-2.0 */
/* Files for reading, whose names people or recordings gave. */
#pragma once

#include "usual.h"

/* A plain file's descriptor, else -1 with errno. Pipes and devices fail with EINVAL, because a pipe
 * would block and a device may have no end. */
int file_open(const char *path);
FILE *file_open_stream(const char *path); /* the same; NULL with errno */

bool file_same(const char *a, const char *b); /* both exist, and are one file or folder */

/* A message for a file that could not be opened or read, by its errno. */
const char *file_trouble(int err);

/* A folder of a command's own, which goes with it. */

/* A new one whose name has that word. 0, or an exit code after one error message. */
int folder_make(char path[PATH_MAX], const char *word);
void folder_remove(const char *path); /* and the files in it */
