/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the phases of a run in one pass over the events, in three layers: the stage of each event
 * (the activity of its thread, by open ranges, backward nodes and the roles of its frames), the
 * number of passes through the network, and the table of spans, each a stretch of one phase. The
 * phase of a stretch without evidence follows from what comes after it: a loss before the backward
 * pass is forward, the clipping of gradients before the optimizer is neither. Phases are those of
 * the whole process. Bytes are kept for every curve that was registered.
 */
#pragma once

#include "../base/map.h"
#include "../recording/defs.h"
#include "../recording/signs.h"
#include "lives.h"

#define SPAN_RANGES 16

enum range_kind { RANGE_OTHER, RANGE_STEP, RANGE_ZERO_GRAD, RANGE_PROFILER };

enum phase {
	PHASE_SETUP,
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OTHER,
	PHASE_OPTIMIZER,
	PHASE_ZERO_GRAD,
	PHASE_EVALUATION, /* forward passes of which nothing was saved, see steps.h */
	PHASES
};

_Static_assert(PHASES <= 8, "a step has a byte of them");

/* The bytes of a stretch of time, and the event after which they were most. */
struct extent {
	uint64_t first_ns, last_ns, first_seq, last_seq;
	uint64_t begin_bytes, end_bytes;
	int64_t growth; /* bytes allocated less bytes freed */
	uint64_t peak, peak_seq, peak_ns;
	uint32_t peak_stack, peak_node; /* of the peak's event; node: backward node, or 0 */
};

/* Number of items that have begun by the event. Each has `each` bytes and begins with its extent;
 * they are in order of their first events. */
size_t extents_begun(const struct extent *first, size_t each, size_t count, uint64_t seq);

struct span {
	struct extent extent; /* its bytes: see spans_measure */
	enum phase phase;
	bool asked;	    /* a backward pass: torch.autograd.grad called it */
	bool in_backward;   /* an optimizer's step by a hook inside the backward pass */
	bool work;	    /* blocks were allocated or freed in it */
	bool left_out;	    /* a bounded recording left out work in it, of an unknown phase */
	bool refused;	    /* memory ran out in it */
	bool blind;	    /* the thread that runs forward allocated blocks without a stack */
	uint32_t gradients; /* that arrived at leaves in it */
	int32_t blocks;	    /* an optimizer's step: blocks allocated less blocks freed; forward:
			     * blocks allocated before autograd saved something */
	uint32_t pass;	    /* forward: the number of its latest pass */
	bool kept;	    /* autograd saved something in it, or backward went through it */
	uint32_t name;	    /* string of the optimizer's range, 0 = none */
	uint32_t stack;	    /* optimizer or forward: the first stack with Python lines, 0 = none */
	uint32_t changes;   /* 1 + the first of its rows in spans.changes, 0 = none */
	uint64_t number;    /* of the optimizer's range around it, 0 = known by frames only */
	uint64_t profiler;  /* number of the ProfilerStep range around it, 0 = none */
};

/* A curve's bytes in a span. A curve without a row did not change. */
struct span_change {
	uint32_t level, next; /* next: 1 + the span's next row */
	struct extent extent; /* without first_* and last_*: they are the span's */
};

/* A curve whose bytes are kept by span, with its extent since the latest span began. */
struct span_level {
	const uint64_t *now;
	uint32_t number;
	struct extent extent;
};

struct span_thread {
	uint32_t id;
	bool engine;	  /* a thread of autograd */
	uint64_t context; /* from its latest GMT_CTX_CURRENT */
	unsigned depth;
	uint64_t step, zero_grad; /* innermost open ranges by number, 0 = none */
	uint64_t outer_step;	  /* the outermost open step */
	uint32_t outer_name;	  /* and its name */
	uint64_t number[SPAN_RANGES];
	uint32_t name[SPAN_RANGES]; /* deeper ranges are counted but not kept */
};

/* State at the current event. */
struct span_now {
	struct span_thread *thread;
	enum block_stage stage;
	uint32_t signs;	    /* enum stack_sign of its stack */
	bool is_work;	    /* it allocates or frees memory: its stage counts for passes */
	bool backward_over; /* it shows that a backward pass is over */
	bool called;	    /* another call of backward() begins with it */
};

/* End of an optimizer's range, seq 0 = still open. refused: seq is when memory ran out in it. */
struct step_end {
	uint64_t seq;
	bool refused;
};

struct spans {
	const struct defs *defs;
	struct signs *signs;
	struct span_now now;

	uint64_t steps;		  /* Optimizer.step ranges that began */
	uint32_t forwards;	  /* forward passes that began, by frames of stacks */
	uint32_t backwards;	  /* backward passes that began, by backward nodes */
	uint32_t forwards_before; /* `forwards` at the end of the last backward pass or step */
	bool in_forward, in_backward;
	bool nodes;   /* backward nodes ran since backward() was called last */
	bool asked;   /* this backward pass began with torch.autograd.grad */
	bool stepped; /* an optimizer stepped since the latest backward pass began */

	struct span *items;
	size_t count, room;
	bool ended;	 /* the program ended, not only the recording */
	bool trains;	 /* a backward pass or an optimizer's step was seen */
	bool tags;	 /* with tags: a forward pass that saves nothing has no gradients */
	bool python;	 /* stacks have Python lines: one without was recorded in a pause */
	bool framework;	 /* framework blocks are recorded: CUDA calls do not count */
	uint64_t driver; /* 1 + thread that runs forward and the optimizer */
	uint64_t profiler;
	uint64_t optimized; /* the latest optimizer's range that had work */
	uint64_t closure;   /* the latest one in which passes ran */
	uint64_t state_seq; /* events up to it list the memory at the start */
	bool bare;	    /* only blocks that live at the end have stacks */
	uint64_t last_seq, last_ns;

	struct span_level **levels;
	size_t level_count, level_room;
	struct span_change *changes;
	size_t change_count, change_room;
	uint32_t change_free; /* 1 + an unused row, 0 = none; its `next` is another */

	struct map thread_ids, names; /* names: range -> enum range_kind */
	struct span_thread **threads;
	size_t thread_count, thread_room;
	MAP_OF(struct step_end) step_ends; /* by number of the optimizer's range */
};

void spans_init(struct spans *s, const struct defs *defs, struct signs *signs);
void spans_free(struct spans *s);
/* To call before the event changes a curve. */
void spans_event(struct spans *s, const struct gmt_event *e);

/* Keeps the bytes of a curve by span from here on. The result lives as long as s. */
struct span_level *spans_add_level(struct spans *s, const uint64_t *now);
/* Fills in the extents of all spans: times, and the bytes of that curve; NULL = no bytes. */
void spans_measure(struct spans *s, const struct span_level *level);

static inline bool span_is_forward(const struct span *s)
{
	return s->phase == PHASE_FORWARD || s->phase == PHASE_EVALUATION;
}

static inline bool stage_is_backward(unsigned stage)
{
	return stage == STAGE_BACKWARD || stage == STAGE_RECOMPUTE;
}

enum range_kind spans_range_kind(struct spans *s, uint32_t name);
/* The name of a thread's innermost range, 0 = none. */
uint32_t spans_range(const struct span_thread *t);
/* True for threads of autograd. */
bool spans_is_engine(const struct spans *s, uint32_t thread);
struct step_end spans_step_end(const struct spans *s, uint64_t number);

extern const struct phase_words {
	const char *name; /* "zero_grad" */
	const char *text; /* "optimizer step" */
	const char *noun; /* "backward pass": after "the" */
	char letter;	  /* in a chart of characters */
} phases[PHASES];

/* Extends a by b, which begins where a ended or overlaps it. */
void extent_join(struct extent *a, const struct extent *b);
