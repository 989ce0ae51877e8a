/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a question over to Python. The modules that answer it lie inside the tool and go along with
 * the question, so that any Python will do; the answer comes back line by line. Signals that would
 * end this process are passed on, so that nothing half done stays.
 */
#pragma once

#include <signal.h>

#include "../base/bytes.h"

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
