/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of code and commands in words. A place is known by its number: where room is short the
 * function goes first, then the beginning of the file's name, the number never. Where stdout is no
 * terminal nothing is cut: another program reads it, or a file keeps it.
 */
#ifndef VIEWER_OWNER_WORDS_H
#define VIEWER_OWNER_WORDS_H

#include "defs.h"
#include "owners.h"

#define OWNER_WORDS 512 /* bytes that hold any of them */

bool words_are_cut(void); /* stdout is a terminal */

/* Its function: of C++ without parameters and arguments of templates, in buf. */
const char *owner_name(const struct owner *o, char *buf, size_t room);
/* "function file.py:12" in so many columns, 0 = all of it. Returns buf. */
const char *owner_words(const struct owner *o, char *buf, size_t room, size_t columns);
/* The same; where it does not fit its file and line only, if it has them. */
const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns);
/* "file.py:12" */
const char *owner_place(const struct owner *o, char *buf, size_t room, size_t columns);

/* A text, cut at its end if it must be, or at its beginning. Return buf. */
const char *words_within(const char *text, char *buf, size_t room, size_t columns);
const char *words_end(const char *text, char *buf, size_t room, size_t columns);

/* Of "Net.forward net.py:12", where it does not fit, the place alone. Returns buf. */
const char *words_of_place(const char *text, char *buf, size_t room, size_t columns);

/* Arguments as recorded, which end with a zero each, as one line; the caller frees it. */
struct defs_text argv_line(const char *argv, size_t len);

/* What was started: the program's folder left out, of the code behind -c its beginning. Returns
 * buf. */
const char *command_words(const struct defs *d, char *buf, size_t room);

#endif
