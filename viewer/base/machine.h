/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that reading a recording needs from its surroundings, apart from files, memory and the
 * names in ELF files (recording/symbols.h). There are two implementations: the command's
 * (machine.c, with a terminal) and the library's (ask/library_machine.c, without a terminal and an
 * environment).
 */
#pragma once

#include "usual.h"

/* Reports one sentence, an error or a note. */
void machine_say(bool error, const char *text, size_t len);
/* Shows the progress of a long pass; without a percentage if all is 0. what = NULL removes it. */
void machine_progress(const char *what, uint64_t done, uint64_t all);
/* Ends the command; in the library, only the current question. */
_Noreturn void machine_out_of_memory(void);
/* The value of a setting, or NULL. */
const char *machine_setting(const char *name);
/* Whether f (NULL: standard output) is a terminal; its size, zeros if unknown. Pointers can be
 * NULL. */
bool machine_terminal(FILE *f, unsigned *columns, unsigned *rows);
/* Whether f is a terminal that understands escapes. */
bool machine_moves(FILE *f);
/* A signal that ends the process removes the file, from a call with begins = true to one with
 * false. */
void machine_unfinished(const char *path, bool begins);
