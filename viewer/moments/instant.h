/* SPDX-License-Identifier: Apache-2.0 */
/* A moment in words: "step 2, optimizer step, AdamW _foreach_sqrt". */
#pragma once

#include "../model/steps.h"
#include "../recording/owners.h"

#define INSTANT_MAX 1200

struct timeline;

struct instant {
	size_t step; /* 0 = before the first */
	enum phase phase;
	char what[INSTANT_MAX / 2]; /* "AdamW _foreach_sqrt"; "" = nothing known */
	char text[INSTANT_MAX];	    /* all of it */
};

/* Of the event after which x was at its highest. */
void instant_of_peak(struct instant *out, const struct timeline *t, const struct extent *x);
/* Of the whole run. */
void instant_of_highest(struct instant *out, const struct timeline *t);

/* The operator that the program called, "" if it is not known. */
void instant_operator(struct stacks *s, uint32_t stack, uint64_t seq, char *buf, size_t room);

/* It behind a verb: "in step 2, ...", "after the last step, ...", "at train.py:3". Empty if nothing
 * is known. Returns buf. */
const char *instant_phrase(const char *text, char *buf, size_t room);
/* The same as a line of its own: "In step 2, ...". */
const char *instant_line(const char *text, char *buf, size_t room);
