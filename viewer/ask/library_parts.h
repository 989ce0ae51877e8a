/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "../moments/kept.h"
#include "../base/usual.h"
#include "gpumemtrace.h"

/*
 * A question: what(ctx), whose sentences and notes go into the answer. Returns its code, or
 * UNREADABLE with a sentence if memory ran out in it; *lost says so, and what it had allocated
 * stays. `what` is a function of its own, because after a jump out of it the locals of the function
 * that jumps back would have no certain value.
 */
int library_ask(struct gpumemtrace_answer *answer, bool *lost, int (*what)(void *ctx), void *ctx);

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
