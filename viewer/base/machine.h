/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that reading a recording takes from its surroundings, apart from files, memory and the
 * names in ELF files (recording/symbols.h). Each face has an implementation
 * of its own: the command (machine.c, a terminal) and the library (ask/library_machine.c, no
 * terminal and no environment).
 */
#pragma once

#include "usual.h"

/* One sentence, an error or a note. */
void machine_say(bool error, const char *text, size_t len);
/* Progress of a long pass; all = 0: in words. NULL ends it. */
void machine_progress(const char *what, uint64_t done, uint64_t all);
/* Ends the command, or the question. */
_Noreturn void machine_out_of_memory(void);
/* A setting by its name, or NULL. */
const char *machine_setting(const char *name);
/* Whether f (NULL: standard output) is a terminal; its size, zeros if unknown. Pointers may be
 * NULL. */
bool machine_terminal(FILE *f, unsigned *columns, unsigned *rows);
/* Whether f is a terminal that understands escapes. */
bool machine_moves(FILE *f);
/* A file is written under a temporary name: a signal that ends the process removes it. */
void machine_unfinished(const char *path, bool begins);
