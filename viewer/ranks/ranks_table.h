/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per rank of a run, from a command's answer for that rank's recording: figures for the
 * columns, and the bytes of each class and line of code at the moment of the answer.
 */
#pragma once

#include "../base/json.h"
#include "../base/map.h"
#include "../classes/classify.h"
#include "../recording/owners.h"
#include "ranks_find.h"
#include "ranks_work.h"

enum ranks_kind {
	RANKS_BYTES = 1,
	RANKS_GROWTH, /* bytes, with a sign */
	RANKS_COUNT,
	RANKS_NUMBER, /* a number that is a name */
	RANKS_DECIMAL,
	RANKS_SECONDS, /* nanoseconds */
	RANKS_FLAG,
	RANKS_WORDS,
	RANKS_CATEGORY, /* the name of a class */
	RANKS_PLACE,	/* function, file and line */
	RANKS_CLASS,	/* the largest of an object with the bytes of each class */
};

enum ranks_flag {
	RANKS_MAIN = 1,	  /* the figure that outliers are found by */
	RANKS_SUM = 2,	  /* the sum over ranks is meaningful */
	RANKS_APART = 4,  /* ranks with different values get separate rows */
	RANKS_SOME = 8,	  /* shown unless it is 0 for all ranks */
	RANKS_QUIET = 16, /* not shown */
	RANKS_EXACT = 32, /* a difference of a few bytes counts */
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

/* Bytes of one class at a line of code. */
struct ranks_line {
	uint32_t place; /* index in the table's list */
	uint32_t category;
	uint64_t bytes;
};

/* A device that a rank had memory on. */
struct ranks_device {
	int number; /* the rank's own */
	char uuid[48];
	uint64_t peak, reserved; /* reserved: at least the peak; both 0: it has a context only */
	uint64_t context;	 /* bytes there at the peak that no recording shows */
	uint32_t place;		 /* line that held most of the peak, or made the context */
};

struct ranks_row {
	const struct rank_file *file;
	bool fine;
	bool part; /* its file has no end or is damaged: not compared with others */
	int rc;
	char *error; /* if not fine: why there is no answer */
	struct ranks_value *values;
	uint64_t classes[CATEGORIES];
	struct ranks_line *lines;
	size_t line_count, line_room;
	struct ranks_device *devices; /* of `report` */
	size_t device_count, device_room;
};

struct ranks_table {
	const struct ranks_run *run;
	const struct ranks_column *columns; /* of the command, `count` of them */
	size_t count;
	int main;		/* column, -1 = none */
	bool classes;		/* rows have them */
	bool pairs;		/* a row is of two recordings */
	struct ranks_row *rows; /* run->count */
	struct owner *places;
	size_t place_count, place_room;
	struct map place_ids;
};

void ranks_table_init(struct ranks_table *t, const struct ranks_run *run, const char *command);
void ranks_table_free(struct ranks_table *t);

/* Fills a row from the command's answer. */
void ranks_table_add(struct ranks_table *t, size_t row, const struct ranks_result *r);

/* Parses the documents that the command wrote. */
void ranks_documents(const struct ranks_result *r, struct json out[2]);

/* The rows of one host, or all (NULL). */
struct ranks_sums {
	const struct ranks_table *table;
	const char *host;
};

double ranks_sum(const struct ranks_sums *s, size_t column);
size_t ranks_fine(const struct ranks_sums *s); /* number of rows with an answer */
/* Whether no earlier recording is of the same host. */
bool ranks_new_host(const struct ranks_run *run, size_t i);

/* Memory of a rank, or its context alone, on the device on which another rank of its host works. */
struct ranks_elsewhere {
	size_t row, of; /* rows of the memory's rank, and of the rank that works there */
	const struct ranks_device *device;
};

/* All of them, to be freed. */
struct ranks_elsewhere *ranks_elsewhere(const struct ranks_table *t, size_t *count);
/* Bytes of a context, about; 0 = not known. */
uint64_t ranks_elsewhere_context(const struct ranks_table *t);
/* The most that each rank had reserved on that device, with their contexts, added up. */
uint64_t ranks_elsewhere_sum(const struct ranks_table *t, const struct ranks_elsewhere *e);
