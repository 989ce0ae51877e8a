/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which optimizer each step of one is of. A recording has an optimizer's name and not its number:
 * the lines of the program that called it tell one from another. Of two such places
 * - those of which one made state and the other never did are one optimizer that is called from
 *   both, if they have one name and as many gradients came before each;
 * - those that came one after the other, not in turn, belong to no common step.
 * A step of which the place is not known (it needed no memory, or the recording was paused) is of
 * one that is known from other steps; a place that is not known makes no optimizer of its own.
 */
#pragma once

#include "../recording/stacks.h"
#include "spans.h"

#define OPTIMIZERS_MAX 64 /* of one run; a bit each */

struct optimizer {
	uint32_t caller, name; /* its place, see optimizers_caller; its range's string */
	uint32_t gradients;    /* that came before its first step, */
	uint32_t latest;       /* and before the one that was looked at last */
	size_t first, last;    /* its steps by their spans */
	uint64_t calls;
	bool state;   /* a step left blocks behind */
	bool passed;  /* it took several steps, and then another of its name came */
	uint8_t same; /* number of the one that it is */
};

struct optimizers {
	struct optimizer items[OPTIMIZERS_MAX];
	unsigned count;
	uint8_t *of_span; /* of the steps: their numbers */
};

void optimizers_find(struct optimizers *o, const struct spans *s, struct stacks *stacks);
void optimizers_free(struct optimizers *o);

/* Of the step that this span is. */
unsigned optimizers_of(const struct optimizers *o, size_t span);
/* Whether the two may take their steps in one step of the run. */
bool optimizers_in_turn(const struct optimizers *o, unsigned a, unsigned b);

/* Optimizers by their names: "AdamW" of the range "Optimizer.step#AdamW.step". */

#define OPTIMIZER_NAME 64
#define OPTIMIZERS     4 /* of one program that are named */

/* The optimizer of a range or of a frame ("AdamW.step"); "" if it is neither. Returns buf. */
const char *optimizer_name(const char *of, char buf[OPTIMIZER_NAME]);
/* The one that made the latest step, up to that span; "" = no range names one. Returns buf. */
const char *optimizer_of_spans(const struct spans *s, size_t last, const struct defs *defs,
			       char buf[OPTIMIZER_NAME]);
/* The optimizers that made steps, by their first ones: "SparseAdam, Adagrad". Returns buf. */
const char *optimizers_of_spans(const struct spans *s, const struct defs *defs, char *buf,
				size_t room);
/* Tensors of a parameter's size that it keeps; negative: not known, or smaller ones. */
int optimizer_tensors(const char *name);
