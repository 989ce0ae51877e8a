/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row for each rank of a run: of what a command says about its recording, the figures that stand
 * in a column, and what each class and each line of code held at the moment the command is about.
 */
#ifndef VIEWER_RANKS_TABLE_H
#define VIEWER_RANKS_TABLE_H

#include "../base/json.h"
#include "../base/map.h"
#include "../classes/classify.h"
#include "ranks_find.h"
#include "ranks_work.h"

enum ranks_kind {
	RANKS_BYTES = 1,
	RANKS_GROWTH, /* bytes, more or less than before */
	RANKS_COUNT,
	RANKS_NUMBER, /* the same, but a name */
	RANKS_DECIMAL,
	RANKS_SECONDS, /* nanoseconds */
	RANKS_FLAG,
	RANKS_WORDS,
	RANKS_CATEGORY, /* the name of a class */
	RANKS_PLACE,	/* function, file and line */
	RANKS_CLASS,	/* the largest of an object with the bytes of each class */
};

enum ranks_flag {
	RANKS_MAIN = 1,	  /* what makes a rank stray */
	RANKS_SUM = 2,	  /* the sum over the ranks means something */
	RANKS_APART = 4,  /* ranks that differ in it stand in rows of their own */
	RANKS_SOME = 8,	  /* shown only if it is not 0 for all */
	RANKS_QUIET = 16, /* not shown */
	RANKS_EXACT = 32, /* a few bytes make a difference already */
};

enum ranks_document { RANKS_FIRST, RANKS_SECOND };

struct ranks_column {
	const char *command, *key, *title;
	enum ranks_document document;
	const char *path;
	enum ranks_kind kind;
	unsigned flags;
};

struct ranks_value {
	bool known;
	double n;
	char *words;
};

/* What a line of code held of a class. */
struct ranks_line {
	uint32_t place; /* in the table's list */
	uint32_t category;
	uint64_t bytes;
};

struct ranks_row {
	const struct rank_file *file;
	bool fine;
	bool part; /* its file has no end or is damaged: not compared with the others */
	int rc;
	char *error; /* why there is nothing else, if it is not fine */
	struct ranks_value *values;
	uint64_t classes[CATEGORIES];
	struct ranks_line *lines;
	size_t line_count, line_room;
};

struct ranks_place {
	char *function, *file;
	unsigned line;
};

struct ranks_table {
	const struct ranks_run *run;
	const struct ranks_column *columns; /* of the command, `count` of them */
	size_t count;
	int main;		/* column, -1 = none */
	bool classes;		/* rows have them */
	bool pairs;		/* a row is of two recordings */
	struct ranks_row *rows; /* run->count */
	struct ranks_place *places;
	size_t place_count, place_room;
	struct map place_ids;
};

void ranks_table_init(struct ranks_table *t, const struct ranks_run *run, const char *command);
void ranks_table_free(struct ranks_table *t);

/* Fills a row from what the command said. */
void ranks_table_add(struct ranks_table *t, size_t row, const struct ranks_result *r);

/* The documents that it wrote. */
void ranks_documents(const struct ranks_result *r, struct json out[2]);

/* The rows of one host, or all (NULL). */
struct ranks_sums {
	const struct ranks_table *table;
	const char *host;
};

double ranks_sum(const struct ranks_sums *s, size_t column);
size_t ranks_fine(const struct ranks_sums *s); /* rows that there is an answer of */
/* No recording before that one is of its host. */
bool ranks_new_host(const struct ranks_run *run, size_t i);

#endif
