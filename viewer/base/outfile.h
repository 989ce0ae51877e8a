/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and makes output files. They can replace only the tool's own earlier output. */
#pragma once

#include "usual.h"

/* Returns 0 if path is free, empty or a recording, in a writable folder; else an exit code after
 * one error message. */
int outfile_check(const char *path);

int outfile_check_folder(const char *path); /* only checks that the folder is writable */

bool outfile_holds_recording(const char *path);

/* A file that gets its name when it is complete. */
struct outfile {
	FILE *f;
	const char *path;
	char part[PATH_MAX];
};

/* The rule for every output: it can replace an existing file that is empty or begins with `head`,
 * as this kind of output does. `what` names the kind in messages ("a flame graph"). Returns 0, or
 * an exit code after one error message. */
int outfile_check_kind(const char *path, const char *head, size_t length, const char *what);

bool outfile_begins(const char *path, const char *head, size_t length); /* or it is empty */
/* Whether the file's first 256 bytes contain the text, or it is empty. */
bool outfile_starts_with(const char *path, const char *text);
int outfile_refuse(const char *path, const char *what); /* reports that it is not `what` */

#define OUTFILE_PAGE "<!doctype html>\n<!-- SPDX", "a page of this tool"

/* Checks path as above and opens it for writing. Same return values. */
int outfile_open(struct outfile *o, const char *path, const char *head, const char *what);
/* The same after path was checked; only the file's owner can read it. */
int outfile_begin(struct outfile *o, const char *path);
int outfile_commit(struct outfile *o);
void outfile_drop(struct outfile *o); /* discards the file */
