/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights, their gradients and optimizer state that are still there though work has gone on without
 * them for a whole step: models of earlier folds, trials or phases that something still refers to.
 * Nothing is found where uses are not known.
 */
#pragma once

#include "../moments/snapshot.h"
#include "holders.h"

struct unused {
	struct holders holders; /* by class and line, the largest first */
	uint64_t *since;	/* of each block of the snapshot: its last use, 0 = it is in use */
	uint64_t bytes, classes[CATEGORIES];
	size_t step; /* the latest in which one of them was used, 0 = before the first */
};

void unused_find(struct unused *u, struct timeline *t, const struct snapshot *s);
/* The same at the end of the last step that ended. *u is empty, and stays so if none did. */
void unused_at_end(struct unused *u, struct timeline *t);
void unused_free(struct unused *u);
/* "have not been used since step 3 (parameters 1.0 GiB, optimizer state 2.0 GiB)". Returns buf. */
const char *unused_words(const struct unused *u, char *buf, size_t room);
