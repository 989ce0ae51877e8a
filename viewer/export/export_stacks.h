/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks alive at a moment, summed up by class and stack: the data of profiles. */
#pragma once

#include "export.h"

struct stack_sum {
	unsigned category;
	uint32_t stack, name; /* name: the backward node if there is no stack */
	uint64_t seq, bytes, blocks;
	uint64_t all_bytes, all_blocks; /* all blocks of the run; only for pprof */
};

struct stack_sums {
	struct map ids;
	struct stack_sum *items; /* most bytes first */
	size_t count, room;
	uint64_t time_ns;
	int device;
};

int stack_sums_take(struct stack_sums *s, struct export *x);
/* The entry of a class and stack, made if it is missing. */
struct stack_sum *stack_sums_at(struct stack_sums *s, unsigned category, const struct block *b);
/* Frames of the kind that --stacks selects, innermost first, in x->timeline.stacks, or the backward
 * node as one; returns their number. */
size_t stack_sum_frames(const struct stack_sum *s, struct export *x);
