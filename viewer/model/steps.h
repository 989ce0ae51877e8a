/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training steps of a run, found from its spans. A step ends with the optimizer. Several
 * optimizers share a step until the first of them steps again, and one that is called inside the
 * backward pass does not end it. Ranges of torch.profiler ("ProfilerStep#") are steps as they are.
 * Without an optimizer a step is a forward and a backward pass, without a backward pass it is one
 * call of the outermost module.
 *
 * Forward passes without gradients (no_grad, inference_mode) are a validation loop if some steps
 * have none. If each step has some, for a teacher model say, they are part of the step.
 */
#pragma once

#include "../recording/stacks.h"
#include "spans.h"

enum steps_basis {
	STEPS_NONE, /* no steps */
	STEPS_PROFILER,
	STEPS_OPTIMIZER,
	STEPS_BACKWARD,
	STEPS_FORWARD,
};

struct step {
	size_t first, last;    /* its spans, inclusive */
	struct extent extent;  /* of all its spans */
	enum phase peak_phase; /* phase of its peak */
	bool ended;	       /* its optimizer stepped, or it needs none */
	uint8_t phases;	       /* a bit for each phase that it has */
};

/* All spans of one phase in a step. */
struct step_phase {
	struct extent extent;
	unsigned times; /* how often the step had it, 0 = never */
};

struct steps {
	enum steps_basis basis;
	struct step *items; /* items[0] is the time before the first step */
	size_t count, room;
	bool tail;     /* the last item is the time after the last step */
	bool at_least; /* the recording was paused, so there might be more */
};

/* Finds the steps of measured spans; the caller frees them. Forward passes of which nothing was
 * saved become evaluation if some step has none. */
void steps_find(struct steps *out, struct spans *s, struct stacks *stacks);
/* The same, but evaluation counts as forward. */
void steps_find_plain(struct steps *out, struct spans *s, struct stacks *stacks);
bool steps_evaluate(const struct steps *steps); /* some have evaluation */
/* One phase of a step. Computed on demand, because keeping it for many steps would cost memory. */
struct step_phase steps_phase(const struct spans *s, const struct step *step, enum phase phase);

/* Number of spans in a step, from items[step->first] on. */
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

size_t steps_number(const struct steps *steps); /* without before and after */

/* The index of the item that an event is in, and the span. */
size_t steps_at(const struct steps *steps, uint64_t seq);
const struct span *steps_span(const struct steps *steps, const struct spans *s, uint64_t seq);

extern const struct steps_basis_words {
	const char *name; /* "optimizer" */
	const char *text; /* "a step ends with the optimizer" */
} steps_bases[];
