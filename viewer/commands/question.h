/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that Python answers: runs of a program on simulated cards (python/gpumemtrace/search)
 * or a lake (python/gpumemtrace/lake). The answer comes back in parts, which are printed here.
 */
#pragma once

#include <signal.h>

#include "../base/emit.h"
#include "../base/json.h"

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
