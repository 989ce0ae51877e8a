/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files for reading whose names come from people or recordings. */
#pragma once

#include "usual.h"

/* A plain file's descriptor, else -1 with errno. Pipes and devices fail with EINVAL, because a pipe
 * would block and a device might have no end. */
int file_open(const char *path);
FILE *file_open_stream(const char *path); /* the same; NULL with errno */

bool file_same(const char *a, const char *b); /* both exist, and are one file or folder */

/* The path relative to the working directory, if it lies below that. */
const char *file_from_here(const char *path);

/* A message for a file that could not be opened or read, by its errno. */
const char *file_trouble(int err);

/* Makes a temporary folder with that word in its name. Returns 0, or an exit code after one error
 * message. */
int folder_make(char path[PATH_MAX], const char *word);
void folder_remove(const char *path); /* with the files in it */
