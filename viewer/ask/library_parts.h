/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <setjmp.h>

#include "../moments/kept.h"
#include "../base/usual.h"
#include "gpumemtrace.h"

/* A question in its thread: where it ends if there is no memory left, and what it says. */

struct asked {
	jmp_buf out_of_memory;
	struct gpumemtrace_answer *answer;
	bool lost; /* memory ran out */
};

/* From here on this thread's sentences belong to that question; NULL: to none. */
void asked_begin(struct asked *a, struct gpumemtrace_answer *answer);
/* Ends it; returns its code, UNREADABLE with a sentence if memory ran out. */
int asked_end(struct asked *a, int code);

/* Runs the statement of a question: false if memory ran out in it. What it had allocated stays. */
#define asked_try(a) (!setjmp((a)->out_of_memory))

/* An open recording, for the files of the library. */

struct gpumemtrace {
	pthread_mutex_t lock; /* of all that follows */
	unsigned users;	      /* its owner, and streams of its tables */
	char *name;
	int bytes; /* descriptor of the memory that it was given as, -1 = none */
	bool lost; /* memory ran out while it was asked */
	struct recording recording;
	struct kept kept;
};
