/* SPDX-License-Identifier: Apache-2.0 */
/* An open recording, for the files of the library. */
#pragma once

#include <pthread.h>

#include "../moments/kept.h"
#include "library_machine.h"

struct gpumemtrace {
	pthread_mutex_t lock; /* of all that follows */
	unsigned users;	      /* its owner, and streams of its tables */
	char *name;
	int bytes; /* descriptor of the memory that it was given as, -1 = none */
	bool lost; /* memory ran out while it was asked */
	struct recording recording;
	struct kept kept;
};

void library_hold(struct gpumemtrace *r);
