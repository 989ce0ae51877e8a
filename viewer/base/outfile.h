/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places where something is to be written: what the tool itself made there earlier may go, anybody
 * else's file not.
 */
#ifndef VIEWER_OUTFILE_H
#define VIEWER_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* 0 if path is free, empty or a recording, in a folder that can be written to; else a sentence was
 * said and the exit code. */
int outfile_check(const char *path);

int outfile_check_folder(const char *path); /* only that files can be made where it is to be */

/* Removes the recording (or empty file) at path and its live file. Same return values. */
int outfile_clear(const char *path);

bool outfile_holds_recording(const char *path);

/* A file that gets its name when it is whole. */
struct outfile {
	FILE *f;
	const char *path;
	char part[PATH_MAX];
};

/* What is at path may be written over if it is empty or begins with `head`; `what` is its name in
 * the sentence ("a flame graph"). 0, or a sentence was said and the exit code. */
int outfile_open(struct outfile *o, const char *path, const char *head, const char *what);
/* The same where path was looked at already; the file is for its owner alone, to read too. */
int outfile_begin(struct outfile *o, const char *path);
int outfile_commit(struct outfile *o);
void outfile_drop(struct outfile *o); /* nothing is written after all */

#endif
