/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as a row of spans of one phase each, from events in their order: the range of an
 * optimizer's step or of zero_grad, the numbers of backward nodes, saves for backward and frames of
 * nn.Module in forward. What lies between two signs is called by what comes after it: a loss before
 * the backward pass is forward, the clipping of gradients before the optimizer is neither.
 *
 * Phases are of the process, bytes of one device.
 */
#ifndef VIEWER_SPANS_H
#define VIEWER_SPANS_H

#include "../stacks/callers.h"
#include "model.h"

enum phase {
	PHASE_SETUP,
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OTHER,
	PHASE_OPTIMIZER,
	PHASE_ZERO_GRAD,
	PHASES
};

/* The bytes of a stretch of time, and the event after which they were most. */
struct extent {
	uint64_t first_ns, last_ns, first_seq, last_seq;
	uint64_t begin_bytes, end_bytes;
	int64_t growth; /* what came less what went in it */
	uint64_t peak, peak_seq, peak_ns;
	uint32_t peak_stack, peak_node; /* of the event; node: of a backward pass, or 0 */
};

struct span {
	struct extent extent;
	enum phase phase;
	bool in_backward;   /* an optimizer's step by a hook inside the backward pass */
	bool work;	    /* blocks came or went in it */
	uint32_t gradients; /* that arrived at leaves in it */
	uint32_t name;	    /* string: range of the optimizer's step */
	uint64_t number;    /* of that range, 0 = it was seen by frames */
	uint64_t caller;    /* hash of the lines that called the optimizer, 0 = not known */
	uint64_t profiler;  /* number of the ProfilerStep range around it, 0 = none */
};

struct span_thread {
	uint64_t optimizer, zero_grad; /* open ranges */
	uint32_t name;		       /* of the optimizer's */
	bool engine;		       /* backward nodes ran on it */
};

struct spans {
	const struct model *model;
	const struct model_device *device;
	bool framework;
	bool guessing; /* the device is that of the first block */
	struct callers callers;

	struct span *items;
	size_t count, room;

	bool trains;	 /* a backward pass or an optimizer's step was seen */
	uint64_t driver; /* 1 + thread that runs forward and the optimizer */
	uint64_t profiler;
	uint64_t bytes;		      /* after the latest event */
	struct map thread_ids, names; /* of ranges -> what they mean */
	struct span_thread *threads;
	size_t thread_count, thread_room;
};

/* m replays the events and has seen each one before spans_event is told of it; framework: whether
 * that device's framework blocks count, or driver allocations. */
void spans_init(struct spans *s, const struct model *m, int device, bool framework,
		struct stacks *stacks);
/* Where neither is known yet: those of the framework's first block. Once all events were seen,
 * spans_fit says whether that was right for a device. */
void spans_guess(struct spans *s, const struct model *m, struct stacks *stacks);
bool spans_fit(const struct spans *s, int device);
void spans_free(struct spans *s);
void spans_event(struct spans *s, const struct gmt_event *e);

const char *phase_name(enum phase phase); /* "zero_grad" */
const char *phase_text(enum phase phase); /* "optimizer step" */
const char *phase_noun(enum phase phase); /* "backward pass": after "the" */

/* a takes in b, which begins where it ended or overlaps it. */
void extent_join(struct extent *a, const struct extent *b);

#endif
