/* SPDX-License-Identifier: Apache-2.0 */
/* When blocks were used, in words and by line of code. */
#pragma once

#include "../moments/snapshot.h"
#include "holders.h"

#define USED_WORDS 600

/* The work's backward node, else its kernel or API function, else "a CUDA graph". Returns buf. */
const char *used_by(const struct timeline *t, uint32_t work, char *buf, size_t room);
/* "in step 3 by AddmmBackward0, 4.1 s before"; ns: the moment. Returns buf. */
const char *used_when(const struct timeline *t, uint32_t work, uint64_t ns, char *buf, size_t room);

/* The time of a work for documents: NO_NUMBER for row 0. */
uint64_t used_ns(const struct model *m, uint32_t work);
/* A life's number of uses for documents; NO_NUMBER if some might be missing. */
uint64_t used_count(const struct model *m, uint32_t life);

/* Blocks of a snapshot that were used before it and are not used again before they are freed. */
struct used_up {
	const struct model *model;
	struct holders holders; /* by class and line, the largest first, with their last use */
	uint64_t *since;	/* for each block: event of its last use, 0 = not used up */
	bool known;		/* all uses are known; else nothing is found */
	uint64_t bytes, classes[CATEGORIES];
	size_t step; /* latest step in which one of them was used, 0 = before the first */
};

void used_up_find(struct used_up *u, struct timeline *t, const struct snapshot *s);
/* Only weights, gradients and optimizer state that a whole step did not use: models of earlier
 * folds, trials or phases that something still refers to. */
void used_up_models(struct used_up *u, struct timeline *t, const struct snapshot *s);
/* The same at the end of the last step that ended. *u must be empty, and stays so if none did. */
void used_up_at_end(struct used_up *u, struct timeline *t);
/* Adds a block to *u, and returns its line; after the last one holders_sort orders the lines. */
struct holder *used_up_add(struct used_up *u, struct timeline *t, const struct block *b,
			   const struct block_uses *x);
void used_up_free(struct used_up *u);
struct rows_unused_line used_up_rows(const struct used_up *u);
/* "have not been used since step 3 (parameters 1.0 GiB, optimizer state 2.0 GiB)". Returns buf. */
const char *used_up_words(const struct used_up *u, char *buf, size_t room);

/* The weights in use at a moment, added by used_weight. */
struct used_weights {
	uint64_t begun;	 /* event of the first use of any, UINT64_MAX = no weights in use */
	uint64_t newest; /* event of the first use of the weight that came into use last */
};
#define USED_WEIGHTS ((struct used_weights){ .begun = UINT64_MAX })

void used_weight(struct used_weights *w, const struct timeline *t, uint64_t seq, uint32_t life);
/* True for weights, gradients and state that will hardly be used again, if the rest of the run is
 * not known. A whole step did not use them, more than twice as many works have passed as in their
 * longest wait, and no weight in use now was used by then. If several steps used them, it is also
 * enough that three times as many works have passed as in their time of use. Or a weight of earlier
 * steps is not in the graph of this step, which has newer weights. */
bool used_no_more(const struct timeline *t, uint64_t seq, const struct block_uses *x,
		  const struct used_weights *w, bool weight);
/* True if neither the step of event `seq` nor the step before it used the block. */
bool used_long_ago(const struct timeline *t, uint64_t seq, uint64_t last_seq);
