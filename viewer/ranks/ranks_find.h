/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings of one run: those of a folder, or files that were named. A run has one of each
 * rank; what else lies in the folder is left alone and counted.
 */
#ifndef VIEWER_RANKS_FIND_H
#define VIEWER_RANKS_FIND_H

#include "ranks_look.h"

struct ranks_run {
	struct rank_file *items; /* by rank; without one, by name */
	size_t count, room;
	char **left; /* files of a folder that are no recording of this run */
	size_t left_count, left_room;
	size_t readable;
	long world;	 /* ranks that it had; 0 = not known */
	size_t runs;	 /* more than 1: several stand together (RANKS_EVERY) */
	char note[1024]; /* what was left out and why, one sentence or several; "" */
};

/* Whether these operands are a run and not one recording. */
bool ranks_is_run(char *const *paths);

/* What is meant by paths that are of several runs. */
enum ranks_meant {
	RANKS_LAST,  /* the one that began last, and a note; files of two runs are an error */
	RANKS_EVERY, /* of each path its last one */
};

/* 0, or a sentence was said and the exit code. A file that cannot be read is an item too. */
int ranks_find(struct ranks_run *out, char *const *paths, enum ranks_meant meant);
void ranks_free(struct ranks_run *r);

/* Which of the ranks 0..world-1 have no recording; NULL: it is not known how many there were. */
bool *ranks_missing(const struct ranks_run *r);

/* "0-3, 7" of such a list. */
const char *ranks_words_of(const bool *marked, long count, char *buf, size_t room);

/* "0-3, 7", of several runs "0-3 of old, 0 of new", of the ranks in this list that are marked. */
const char *ranks_words(const struct ranks_run *r, const bool *marked, char *buf, size_t room);

#endif
