/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the optimizer of each optimizer's step. A recording has the name of an optimizer, but not
 * its number, so the place in the program that called it tells one from another. Two places
 * - are one optimizer if they have the same name and as many gradients before their first steps,
 *   and only one of them made state;
 * - have no step of the run in common if they were used one after the other, not in turn.
 * A step without a known place (it allocated nothing, or the recording was paused) is assigned to
 * an optimizer that is known from other steps of its name, if there is one.
 */
#pragma once

#include "../recording/stacks.h"
#include "spans.h"

#define OPTIMIZERS_MAX 64 /* of one run; a bit each */

struct optimizer {
	uint32_t caller, name; /* hash of the lines that called it; string of its range */
	uint32_t gradients;    /* that arrived before its first step */
	uint32_t latest;       /* that arrived before its step that was assigned last */
	size_t first, last;    /* spans of its first and its last step */
	uint64_t calls;
	bool state;   /* a step left blocks behind */
	bool passed;  /* another of its name appeared after several of its steps */
	uint8_t same; /* number of the optimizer that it was joined to, or its own */
};

struct optimizers {
	struct optimizer items[OPTIMIZERS_MAX];
	unsigned count;
	uint8_t *of_span; /* for spans that are steps: number of the optimizer */
};

/* A hash of the program's own lines on a stack, inside an optimizer's step without those of the
 * optimizer; 0 = there are none. */
uint32_t optimizers_caller(struct stacks *stacks, uint32_t stack);
void optimizers_find(struct optimizers *o, const struct spans *s, struct stacks *stacks);
void optimizers_free(struct optimizers *o);

/* The number of the optimizer whose step this span is. */
unsigned optimizers_of(const struct optimizers *o, size_t span);
/* True if both might take their steps in one step of the run. */
bool optimizers_in_turn(const struct optimizers *o, unsigned a, unsigned b);

/* Optimizers by their names: "AdamW" of the range "Optimizer.step#AdamW.step". */

#define OPTIMIZER_NAME 64
#define OPTIMIZERS     4 /* named at most */

/* The optimizer of a range or of a frame ("AdamW.step"); "" if it is neither. Returns buf. */
const char *optimizer_name(const char *of, char buf[OPTIMIZER_NAME]);
/* The optimizer of the latest step up to that span; "" = no range names one. Returns buf. */
const char *optimizer_of_spans(const struct spans *s, size_t last, const struct defs *defs,
			       char buf[OPTIMIZER_NAME]);
/* The optimizers in the order of their first steps: "SparseAdam, Adagrad". Returns buf. */
const char *optimizers_of_spans(const struct spans *s, const struct defs *defs, char *buf,
				size_t room);
/* Tensors as large as the parameter that it keeps for each; -1 = not known, or smaller ones. */
int optimizer_tensors(const char *name);
