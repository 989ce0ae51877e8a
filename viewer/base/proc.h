/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of processes and of itself: small files of /proc. */
#ifndef VIEWER_PROC_H
#define VIEWER_PROC_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* The file of that name, made as by printf. NULL: it cannot be read. */
FILE *proc_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Its beginning as a text, which is empty if it cannot be read; its length. */
#define proc_read(text, room, ...) proc_text(proc_open(__VA_ARGS__), text, room)
size_t proc_text(FILE *f, char *text, size_t room); /* f is closed */
/* What stands behind "NAME:" at the start of a line of it, or NULL. */
const char *proc_row(const char *text, const char *name);

/* A number of /proc/PID/status; -1: not known. */
long proc_status(pid_t pid, const char *name);

#define PROC_STAT 1024
/* What stands in /proc/PID/stat behind the name of the program, from its state on, or NULL. */
const char *proc_stat(char text[PROC_STAT], pid_t pid);

#endif
