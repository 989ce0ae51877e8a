/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "../moments/kept.h"
#include "../base/usual.h"
#include "gpumemtrace.h"

/*
 * Runs what(ctx) as a question whose sentences and notes go into the answer. Returns its code, or
 * UNREADABLE with a sentence if memory ran out. Then *lost (or NULL) is true and its allocations
 * are not freed. `what` is a function, because the locals of a function that setjmp returns to are
 * indeterminate.
 */
int library_ask(struct gpumemtrace_answer *answer, bool *lost, int (*what)(void *ctx), void *ctx);

/* An open recording, for the files of the library. */

struct gpumemtrace {
	pthread_mutex_t lock; /* of all that follows */
	unsigned users;	      /* 1 for its owner, and 1 for each stream of its tables */
	char *name;
	int bytes; /* memfd of gpumemtrace_open_bytes, -1 = none */
	bool lost; /* memory ran out in a question about it */
	struct recording recording;
	struct kept kept;
};
