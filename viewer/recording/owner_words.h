/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints lines of code and commands. If they do not fit, the function is dropped first, then the
 * beginning of the file's name, but never the line number, because it identifies the place. If
 * stdout is not a terminal nothing is cut, because another program or a file gets it.
 */
#pragma once

#include "defs.h"
#include "owners.h"

#define OWNER_WORDS 512 /* bytes, enough for any of them */

bool words_are_cut(void); /* stdout is a terminal */

/* The name of the owner's function, possibly in buf; of a C++ function without its arguments. */
const char *owner_name(const struct owner *o, char *buf, size_t room);
/* "function file.py:12" in at most that many columns, 0 = unlimited. Returns buf. */
const char *owner_words(const struct owner *o, char *buf, size_t room, size_t columns);
/* The same, but shortened to file and line if it does not fit and has them. */
const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns);
/* "file.py:12" */
const char *owner_place(const struct owner *o, char *buf, size_t room, size_t columns);

/* At most n bytes of a longer text, without a part of a character. */
size_t words_whole(const char *text, size_t n);
/* Copy a text, shortened at its end, or at its beginning. Return buf. */
const char *words_within(const char *text, char *buf, size_t room, size_t columns);
const char *words_end(const char *text, char *buf, size_t room, size_t columns);

/* "Net.forward net.py:12", shortened to file and line if it does not fit. Returns buf. */
const char *words_of_place(const char *text, char *buf, size_t room, size_t columns);

/* Recorded arguments, each with a terminating zero, as one line; the caller frees it. */
struct defs_text argv_line(const char *argv, size_t len);

/* The command without the program's folder; of code after -c only its beginning. Returns buf. */
const char *command_words(const struct defs *d, char *buf, size_t room);
