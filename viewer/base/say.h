/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and exit codes. A command prints its messages on stderr, each behind the name of the
 * command; the library keeps them for its caller (machine.h).
 */
#pragma once

#include "usual.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_CHECK = 1,	     /* a check failed */
	EXIT_USAGE = 2,	     /* wrong usage */
	EXIT_UNREADABLE = 3, /* a file cannot be read or written */
};

/* Says one sentence and returns code, so that `return say_error(...)` reports the reason. */
int say_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define say_usage(...)	    say_error(EXIT_USAGE, __VA_ARGS__)
#define say_unreadable(...) say_error(EXIT_UNREADABLE, __VA_ARGS__)
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A progress line, only on a terminal and only after two seconds; say_progress_end removes it. */
void say_progress(const char *what, uint64_t done, uint64_t all);
void say_doing(const char *text); /* the same without a percentage */
void say_progress_end(void);

/* Only in the command (machine.c). */
void say_command(const char *name); /* NULL: the program itself */
void say_before(void (*f)(void));   /* called before each line, or NULL */
void say_progress_off(void);	    /* for a command that owns the screen */
