/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that were trained and are not any more, their gradients and the optimizer's state for
 * them: models of earlier folds, trials or phases that something still refers to. Reads are not
 * recorded, so each needs a sign that the training went on without it: weights that the same line
 * made later are trained in their place, or another optimizer made its state anew; and a forward
 * pass makes no more results than before, so that no frozen model is part of it. A step whose graph
 * leaves them out, while weights that were made after their last use train with some that trained
 * with them, shows that a new phase has begun, but not that no later one returns to them.
 */
#pragma once

#include "../moments/snapshot.h"
#include "holders.h"

struct unused {
	struct holders holders; /* by class and line, the largest first */
	uint64_t *since;	/* of each block of the snapshot: its last use, 0 = it is in use */
	uint64_t bytes, classes[CATEGORIES];
	uint64_t left; /* of these bytes: only left out of the latest graph */
	size_t step;   /* the latest in which one of them was used */
};

void unused_find(struct unused *u, struct timeline *t, const struct snapshot *s);
/* The same at the end of the last step that ended. *u is empty, and stays so if none did. */
void unused_at_end(struct unused *u, struct timeline *t);
void unused_free(struct unused *u);
/* "parameters 1.0 GiB, optimizer state 2.0 GiB". Returns buf. */
const char *unused_words(const struct unused *u, char *buf, size_t room);
