/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small files of /proc about processes and the system. */
#pragma once

#include "usual.h"

#include <sys/types.h>

/* Opens a file whose name is given in the manner of printf. NULL: it cannot be read. */
FILE *proc_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reads the beginning of that file as a text, empty if it cannot be read; returns its length. */
#define proc_read(text, room, ...) proc_text(proc_open(__VA_ARGS__), text, room)
size_t proc_text(FILE *f, char *text, size_t room); /* f is closed */
/* The text behind "NAME:" at the start of a line, or NULL. */
const char *proc_row(const char *text, const char *name);

/* The path of the running program. Returns false, with path "", if it cannot be read. */
bool proc_own_path(char path[PATH_MAX]);

/* A number of /proc/PID/status; -1: unknown. */
long proc_status(pid_t pid, const char *name);

#define PROC_STAT 1024
/* The fields of /proc/PID/stat behind the name of the program, beginning with its state, or
 * NULL. */
const char *proc_stat(char text[PROC_STAT], pid_t pid);
