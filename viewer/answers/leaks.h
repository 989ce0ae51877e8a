/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth from step to step: lines that hold more after every step than before it. The same moment
 * of each step is compared, after the last of its passes and optimizers. The first quarter of the
 * steps is left out, because programs stabilize in it.
 */
#pragma once

#include "../moments/timeline.h"

struct leak {
	enum category category;
	struct owner owner;
	uint64_t bytes_per_step;
	/* Blocks of the compared steps that were still alive after the last of them. */
	uint64_t bytes, blocks;
	struct block first, latest;
	size_t first_step, latest_step;
};

struct leaks {
	struct leak *items; /* the largest first */
	size_t count, room;
	uint64_t bytes_per_step;   /* of all, on average */
	bool each;		   /* they grow in nearly each of the compared steps */
	size_t from_step, to_step; /* compared steps; equal if there are too few */
	/* If no line keeps growing: lines that hold more blocks after nearly each of these steps,
	 * and then let go of them at once, such as logs of an epoch. */
	struct leaks_again {
		uint64_t bytes;		/* growth of their longest rise; 0 = none */
		size_t from, to;	/* its steps */
		struct leak most, next; /* the lines that grow most in it: class, owner, bytes */
		const char *change;
	} again;
};

void leaks_find(struct leaks *out, struct timeline *t);
void leaks_free(struct leaks *l);
/* A sentence about the change that would end most of the growth. "" if no block of an earlier step
 * is kept, because a single block grows or each step needs more. */
const char *leaks_change(const struct leaks *l);
/* The same where graphs, or other results, of earlier steps are kept. */
const char *leaks_change_kept(bool graphs);
/* The end of the step's last pass or optimizer. */
uint64_t leaks_work_end(const struct timeline *t, const struct step *step);
/* A sentence about results kept over passes after the last step, such as a validation's. False:
 * there are none, or too few passes. */
bool leaks_tail_words(struct timeline *t, char *text, size_t room);
/* The same of passes up to the end of the first step, whose results nothing uses later. */
bool leaks_head_words(struct timeline *t, char *text, size_t room);
/* The last step that can be compared with those before; 0 = none. */
size_t leaks_last_step(const struct timeline *t);
/* The leak at a line, of one of these classes (bits); NULL = it does not grow. */
struct leak *leaks_at(const struct leaks *l, unsigned classes, const struct owner *o);
