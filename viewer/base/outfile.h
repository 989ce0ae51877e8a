/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and makes output files. The tool's own earlier output may be replaced, other files may
 * not.
 */
#pragma once

#include "usual.h"

/* Returns 0 if path is free, empty or a recording, in a writable folder; else an exit code after
 * one error message. */
int outfile_check(const char *path);

int outfile_check_folder(const char *path); /* only checks that the folder is writable */

/* Removes the recording (or empty file) at path and its live file. Same return values. */
int outfile_clear(const char *path);

bool outfile_holds_recording(const char *path);

/* A file that gets its name when it is complete. */
struct outfile {
	FILE *f;
	const char *path;
	char part[PATH_MAX];
};

/* Opens it for writing. An existing file may be replaced if it is empty or begins with `head`;
 * `what` is its name in messages ("a flame graph"). Returns 0, or an exit code after one error
 * message. */
int outfile_open(struct outfile *o, const char *path, const char *head, const char *what);
/* The same after path was checked; only the file's owner may read it. */
int outfile_begin(struct outfile *o, const char *path);
int outfile_commit(struct outfile *o);
void outfile_drop(struct outfile *o); /* discards the file */
