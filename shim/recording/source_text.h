/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of one Python statement in a file's contents.
 */
#pragma once

#include <stddef.h>

/* Writes the statement to out, from the given line (from 1) on: without indentation and comments
 * (but the one in which torch.compile names a buffer's operators), its lines joined by blanks, cut
 * after `room` bytes (then *cut is 1). Returns the bytes written; 0 if the file has no such line.
 * No terminator. */
size_t source_text(const char *file, size_t len, unsigned line, char *out, size_t room, int *cut);
