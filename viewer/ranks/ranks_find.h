/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings of one run: those in a folder, or files given by name. A run has one recording per
 * rank. Other files in the folder are ignored and counted.
 */
#pragma once

#include "ranks_look.h"

struct ranks_run {
	struct rank_file *items; /* by rank; without one, by name */
	size_t count, room;
	char **left; /* files of a folder that do not belong to this run */
	size_t left_count, left_room;
	size_t readable;
	long world;	  /* number of ranks in the run; 0 = unknown */
	size_t runs;	  /* more than 1: there are several (RANKS_EVERY) */
	char note[1024];  /* omitted files and why, in one or more sentences; or "" */
	char differ[768]; /* of files given by name: why they are of different runs; or "" */
};

/* Whether these operands mean a run instead of one recording. */
bool ranks_is_run(char *const *paths);

/* Choice among several runs in the given paths. */
enum ranks_meant {
	RANKS_LAST,  /* the one that began last, with a note; for files of two runs an error */
	RANKS_EVERY, /* the last one of each path */
};

/* Returns 0, or an exit code after one error message. An unreadable file is an item too. */
int ranks_find(struct ranks_run *out, char *const *paths, enum ranks_meant meant);
void ranks_free(struct ranks_run *r);

/* "0-3, 7" for the marked ranks of this list; for several runs "0-3 of old, 0 of new". */
const char *ranks_words(const struct ranks_run *r, const bool *marked, char *buf, size_t room);

/* Decides which recordings in one place belong to one run. */

/* Keeps the last of several runs in one folder, with a note; files given by name are all kept.
 * paths: all folders, or all files. Returns 0, or an exit code after one error message. */
int ranks_one_run(struct ranks_run *run, char *const *paths, bool folders, enum ranks_meant meant);

/* Makes ranks that were simulated alone, each with its own port, ranks of one job. */
void ranks_join_worlds(struct rank_file *items, size_t count);

/* End (exclusive) of the run that begins with `from`. Items from..to must be grouped by job and
 * ordered by start. */
size_t ranks_run_end(const struct rank_file *items, size_t from, size_t to);
/* Whether a rank started this process, which then has that rank's number. */
bool ranks_is_child(const struct rank_file *items, size_t count, const struct rank_file *f);

void ranks_leave(struct ranks_run *run, char *path); /* takes ownership of the path */
