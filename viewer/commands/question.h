/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that Python answers: runs of a program on simulated cards (python/gpumemtrace/search),
 * a lake (lake/), or several recordings (ranks/). The answer comes back in parts, which are printed
 * here.
 */
#pragma once

#include "../base/emit.h"
#include "../base/json.h"
#include "../ask/command.h"

enum question_kind { QUESTION_SEARCH, QUESTION_LAKE, QUESTION_RANKS };

struct question {
	struct emit *out; /* gets the answer */
	/* Gets each part "result", which the command needs itself; or NULL. */
	void (*result)(void *ctx, struct json v);
	void *ctx;
	char **command; /* of a search */
	/* Set by question_begin: */
	enum question_kind kind;
	struct emit *request;
	char *text;
	size_t len;
	FILE *f;
};

/* Begins the request with what is to be done: the name of a command, or "runs". */
void question_begin(struct question *q, enum question_kind kind, const char *what);
void question_list(struct question *q, const char *key, char *const *words); /* ends with NULL */
void question_text(struct question *q, const char *key, const char *text);   /* NULL = "" */
void question_number(struct question *q, const char *key, double n);

/* Like question_begin, for runs on simulated cards (python/gpumemtrace/search): adds the program,
 * its environment, and the names of cards. */
void search_begin(struct question *q, const char *what, const char *cards);

/* The state of an answer. */
#define ANSWER_COLUMNS 16
struct answer {
	struct question *question;
	int code;	     /* -1 before the end */
	bool any, ended;     /* a part came, the last one came */
	bool begun, foreign; /* Python runs handover.py; a line is not part of the answer */
	struct json rows;    /* of the table that is printed */
	char *cells[ANSWER_COLUMNS];
};

/* Prints the next part; false: the line is not one. */
bool answer_take(struct answer *a, const char *line, size_t len);

/*
 * Sends the question to Python (handover.c), together with the embedded modules that answer it, so
 * that any Python will do. Signals that would end this process are passed on, so that Python can
 * clean up. Frees the request and returns the exit code.
 */
int question_ask(struct question *q);

/* Searches that run a program on simulated cards: fit, bisect, and the runs of `advise` and `oom`.
 */

/* advise -- COMMAND, and with --try for a recording; oom --try. They return an exit code. */
int advise_runs(const struct advise_options *o, struct emit *out);
int oom_try(const struct oom_options *o, struct emit *out);

/*
 * Facts about the recordings of a run, for python/gpumemtrace/search: a process that reads
 * questions, each ended by a zero byte, and answers each with a line of JSON, null if the recording
 * cannot be read.
 *
 *   look PATH       of a running program; continues where the last look ended
 *   whole PATH      of a run that ended
 *   written PATH    null unless its process still writes it
 *   complete PATH   after gpumemtrace ended the run: makes it a whole recording that says so
 */

#define SEARCH_FACTS "--search-facts" /* in place of a command */

int search_facts(void); /* returns the exit code */
