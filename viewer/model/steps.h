/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training steps of a run, found from its spans. A step ends with the optimizer; several
 * optimizers are one step until the first of them comes again, and one that is called from the
 * backward pass does not end it. Ranges of torch.profiler ("ProfilerStep#") say it themselves.
 * Without an optimizer a step is a forward and a backward pass, without a backward pass it is one
 * call of the outermost module.
 *
 * Forward passes without gradients (no_grad, inference_mode) that some steps go without are no part
 * of a step's work: a validation loop. Those that each step has, a teacher's say, are.
 */
#pragma once

#include "../recording/stacks.h"
#include "spans.h"

enum steps_basis {
	STEPS_NONE, /* there are none */
	STEPS_PROFILER,
	STEPS_OPTIMIZER,
	STEPS_BACKWARD,
	STEPS_FORWARD,
};

struct step {
	size_t first, last;    /* its spans, inclusive */
	struct extent extent;  /* the whole */
	enum phase peak_phase; /* in which its peak was */
	bool ended;	       /* it came to its optimizer, or needs none */
	uint8_t phases;	       /* a bit for each that came */
};

/* The spans of one phase of a step, together. */
struct step_phase {
	struct extent extent;
	unsigned times; /* how often it came; 0 = not */
};

struct steps {
	enum steps_basis basis;
	struct step *items; /* items[0] is what was before the first step */
	size_t count, room;
	bool tail;     /* the last item is no step but what was after them all */
	bool at_least; /* where the recording was paused there may be more */
};

/* The spans have been measured. Forward passes that nothing was saved of become evaluation where
 * steps come without them. */
void steps_find(struct steps *out, struct spans *s, struct stacks *stacks);
/* The same, but evaluation is forward passes like others. */
void steps_find_plain(struct steps *out, struct spans *s, struct stacks *stacks);
bool steps_evaluate(const struct steps *steps); /* some are evaluation */
/* Of a run of many steps no more than each asks for is kept. */
struct step_phase steps_phase(const struct spans *s, const struct step *step, enum phase phase);

/* How many spans a step has: from items[step->first] on. */
static inline size_t step_spans(const struct spans *s, const struct step *step)
{
	size_t end = step->last + 1 < s->count ? step->last + 1 : s->count;

	return end > step->first ? end - step->first : 0;
}

static inline bool step_has(const struct step *step, enum phase phase)
{
	return step->phases >> phase & 1;
}

void steps_free(struct steps *steps);

size_t steps_number(const struct steps *steps); /* of real ones */

/* The item and the span that an event is in. */
size_t steps_at(const struct steps *steps, uint64_t seq);
const struct span *steps_span(const struct steps *steps, const struct spans *s, uint64_t seq);

extern const struct steps_basis_words {
	const char *name; /* "optimizer" */
	const char *text; /* "a step ends with the optimizer" */
} steps_bases[];
