/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that Python answers: runs of a program on simulated cards (python/gpumemtrace/search)
 * or a lake (python/gpumemtrace/lake). The answer comes back in parts, which are printed here.
 */
#pragma once

#include <signal.h>

#include "../base/emit.h"
#include "../base/json.h"
#include "../base/bytes.h"
#include "../ask/command.h"

enum question_kind { QUESTION_SEARCH, QUESTION_LAKE };

struct question {
	struct emit *out; /* gets the answer */
	/* Gets each part "result", which the command needs itself; or NULL. */
	void (*result)(void *ctx, struct json v);
	void *ctx;
	char **command; /* of a search */
	/* Set here: */
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
/* Asks it, frees the request and returns the exit code. */
int question_ask(struct question *q);

/* Questions of runs of a program on simulated cards (python/gpumemtrace/search). */

/* A simulated card. */
struct card {
	char name[96]; /* as SIMGPU_CARD has it */
	uint64_t memory, context;
	int major, minor, code, processors;
};

/* Like question_begin, with the program, its environment and the cards. */
void search_begin(struct question *q, const char *what, const struct card *cards, size_t count);

/*
 * Hands a question over to Python. The modules that answer it lie inside the tool and go along with
 * the question, so that any Python will do; the answer comes back line by line. Signals that would
 * end this process are passed on, so that nothing half done stays.
 */

#define PYTHON_LEAST   "3.9"
#define HANDOVER_WORDS 512
enum { HANDOVER_NOT_STARTED = 97, HANDOVER_SIGNALS = 3 };

struct handover {
	const char *const *flags; /* of Python, ending with NULL */
	const struct bytes *request;
	bool (*take)(void *ctx, const char *line, size_t len); /* false: no part of an answer */
	void *ctx;
	/* The result: */
	bool begun;		    /* this Python ran the question's first lines */
	bool foreign;		    /* a line came that is no part of an answer */
	int status;		    /* as of waitpid */
	char words[HANDOVER_WORDS]; /* ": " and the last line of what it wrote besides, or "" */
};

/* Where a Python is looked for, in order: GPUMEMTRACE_PYTHON if it is set, python3, python; then
 * NULL. */
const char *python_place(size_t i);

/* Returns 0 when that Python has ended, else an exit code after one error message. */
int handover_ask(struct handover *h, const char *python);

/* While questions are asked signals are passed on: those that would end this process, or even those
 * that it ignores. handover_stop returns the one that came, or 0. */
void handover_listen(struct sigaction old[HANDOVER_SIGNALS], bool even_ignored);
int handover_stop(const struct sigaction old[HANDOVER_SIGNALS]);
bool handover_interrupted(void);

/* Searches that run a program on simulated cards: fit, bisect, and the runs of `advise`. */

/* advise -- COMMAND. Returns an exit code. */
int advise_runs(const struct advise_options *o, struct emit *out);

/*
 * Facts of the recordings of a run that python/gpumemtrace/search follows and measures: a process
 * that reads a line for each question and answers with a line of JSON, null if the recording cannot
 * be read.
 *
 *   look PATH       of a run that goes on; reads on where the last look ended, and of the steps
 *                   only those that changed are sent
 *   whole PATH      of a run that ended
 *   written PATH    null unless its process still writes it
 *   complete PATH   the run was ended by gpumemtrace: makes a whole recording of it that says so
 */

#define SEARCH_FACTS "--search-facts" /* in place of a command */

int search_facts(void); /* returns the exit code */
