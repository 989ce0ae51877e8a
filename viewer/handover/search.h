/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of runs of a program on simulated cards (python/gpumemtrace/search). */
#ifndef VIEWER_SEARCH_H
#define VIEWER_SEARCH_H

#include "question.h"

/* A simulated card. */
struct card {
	char name[96]; /* as SIMGPU_CARD has it */
	uint64_t memory, context;
	int major, minor, code, processors;
};

/* As question_begin, with the program, its environment and the cards. */
void search_begin(struct question *q, const char *what, const struct card *cards, size_t count);

#endif
