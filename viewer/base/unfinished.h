/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are not finished: a signal that ends the process removes them first. Only signals that
 * nobody else handles or ignores; in the process that made the file, not in its children.
 */
#ifndef VIEWER_UNFINISHED_H
#define VIEWER_UNFINISHED_H

/* Before the file is made; the path is copied. More than 64 at a time are left to themselves. */
void unfinished_begin(const char *path);
/* It has its name, or is gone. */
void unfinished_end(const char *path);

#endif
