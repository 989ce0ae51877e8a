/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of code and commands as words. The line number identifies a place. If there is too little
 * room, the function is dropped first, then the beginning of the file's name, the number never. If
 * stdout is not a terminal nothing is cut, because another program or a file gets it.
 */
#pragma once

#include "defs.h"
#include "owners.h"

#define OWNER_WORDS 512 /* bytes, enough for any of them */

bool words_are_cut(void); /* stdout is a terminal */

/* Name of its function, in buf; of a C++ function without parameters and template arguments. */
const char *owner_name(const struct owner *o, char *buf, size_t room);
/* "function file.py:12" in at most that many columns, 0 = unlimited. Returns buf. */
const char *owner_words(const struct owner *o, char *buf, size_t room, size_t columns);
/* The same, but shortened to file and line if it does not fit and has them. */
const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns);
/* "file.py:12" */
const char *owner_place(const struct owner *o, char *buf, size_t room, size_t columns);

/* So many bytes of a longer text, or fewer: not a part of a character. */
size_t words_whole(const char *text, size_t n);
/* A text, shortened at its end, or at its beginning. Return buf. */
const char *words_within(const char *text, char *buf, size_t room, size_t columns);
const char *words_end(const char *text, char *buf, size_t room, size_t columns);

/* "Net.forward net.py:12", shortened to file and line if it does not fit. Returns buf. */
const char *words_of_place(const char *text, char *buf, size_t room, size_t columns);

/* Recorded arguments, which end with a zero each, as one line; the caller frees it. */
struct defs_text argv_line(const char *argv, size_t len);

/* The command without the program's folder; of code after -c only its beginning. Returns buf. */
const char *command_words(const struct defs *d, char *buf, size_t room);
