/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows from step to step: the lines that hold more after every step than before it. Compared
 * is the same moment of the steps, when the last of the passes and optimizers is over; the first
 * quarter of the steps is left out, in which programs settle.
 */
#ifndef VIEWER_LEAKS_H
#define VIEWER_LEAKS_H

#include "../moments/timeline.h"

struct leak {
	enum category category;
	struct owner owner;
	uint64_t bytes_per_step;
	/* Blocks of the compared steps that were still there after the last of them. */
	uint64_t bytes, blocks;
	struct block first, latest;
	size_t first_step, latest_step;
};

struct leaks {
	struct leak *items; /* the largest first */
	size_t count, room;
	uint64_t bytes_per_step;   /* of all */
	size_t from_step, to_step; /* compared; equal if there are too few to tell */
};

void leaks_find(struct leaks *out, struct timeline *t);
void leaks_free(struct leaks *l);
/* That of a line, of one of these classes (bits); NULL = it does not grow. */
struct leak *leaks_at(const struct leaks *l, unsigned classes, const struct owner *o);

#endif
