/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread was doing, from when to when, found while the events pass once. Three things,
 * each made from the one before it: the stage of an event (what its thread was doing just then,
 * from its open ranges, backward nodes and the roles of its stack's frames), passes through the
 * network (counted), and the table of spans: the run as a row of spans of one phase each. What lies
 * between two signs is called by what comes after it: a loss before the backward pass is forward,
 * the clipping of gradients before the optimizer is neither.
 *
 * Phases are of the process; bytes are kept for every curve that was registered.
 */
#pragma once

#include "../base/map.h"
#include "../recording/defs.h"
#include "../recording/signs.h"
#include "lives.h"

#define SPAN_RANGES 16
#define SPAN_RECENT 1024

enum range_kind { RANGE_OTHER, RANGE_STEP, RANGE_ZERO_GRAD, RANGE_PROFILER };

enum phase {
	PHASE_SETUP,
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OTHER,
	PHASE_OPTIMIZER,
	PHASE_ZERO_GRAD,
	PHASE_EVALUATION, /* forward passes that nothing was saved of, see steps.h */
	PHASES
};

_Static_assert(PHASES <= 8, "a step has a byte of them");

/* The bytes of a stretch of time, and the event after which they were most. */
struct extent {
	uint64_t first_ns, last_ns, first_seq, last_seq;
	uint64_t begin_bytes, end_bytes;
	int64_t growth; /* what came less what went in it */
	uint64_t peak, peak_seq, peak_ns;
	uint32_t peak_stack, peak_node; /* of the event; node: of a backward pass, or 0 */
};

/* Of items in order of their first events, each of so many bytes: how many have begun by the event.
 */
size_t extents_begun(const struct extent *first, size_t each, size_t count, uint64_t seq);

struct span {
	struct extent extent; /* its bytes: see spans_measure */
	enum phase phase;
	bool asked;	    /* a backward pass: torch.autograd.grad called it */
	bool in_backward;   /* an optimizer's step by a hook inside the backward pass */
	bool work;	    /* blocks came or went in it */
	bool left_out;	    /* a bounded recording left work of it out, and nothing says which */
	bool refused;	    /* memory ran out in it */
	bool blind;	    /* blocks came without a stack on the thread that drives */
	uint32_t gradients; /* that arrived at leaves in it */
	int32_t blocks;	    /* an optimizer's step: that it left behind; < 0: that it took away */
	uint32_t pass;	    /* forward: the number of its latest pass, */
	bool kept;	    /* and autograd saved something of it, or went back through it */
	uint32_t name;	    /* string: range of the optimizer's step */
	uint32_t stack;	    /* the first one of Python in an optimizer's step, 0 = none */
	uint32_t changes;   /* 1 + the first of its rows in spans.changes, 0 = none */
	uint64_t number;    /* of the optimizer's range that it is in, 0 = it was seen by frames */
	uint64_t profiler;  /* number of the ProfilerStep range around it, 0 = none */
};

/* How a curve went in a span; a curve without a row stayed as it was. */
struct span_change {
	uint32_t level, next; /* next: 1 + the span's next row */
	struct extent extent; /* without times and events of its ends: they are the span's */
};

/* A curve whose way through the spans is kept: since the latest span began or went on. */
struct span_level {
	const uint64_t *now;
	uint32_t number;
	struct extent extent;
};

struct span_thread {
	uint32_t id;
	bool engine;	  /* one of autograd's own */
	uint64_t context; /* what its latest GMT_CTX_CURRENT said */
	unsigned depth;
	uint64_t step, zero_grad; /* numbers of open ranges: the innermost optimizer's step, */
	uint64_t outer_step;	  /* the outermost one, */
	uint32_t outer_name;	  /* with its name */
	uint64_t number[SPAN_RANGES];
	uint32_t name[SPAN_RANGES]; /* deeper ranges are counted but not kept */
};

/* Of the event that passes now. */
struct span_now {
	struct span_thread *thread;
	enum block_stage stage;
	uint32_t signs;	    /* of its stack */
	bool is_work;	    /* memory came or went: the stage counts for passes */
	bool backward_over; /* with it a backward pass is known to be over */
	bool called;	    /* with it another call of backward() begins */
};

/* The end of an optimizer's range, 0 = it is open; refused: the event at which memory ran out. */
struct step_end {
	uint64_t seq;
	bool refused;
};

struct spans {
	const struct defs *defs;
	struct signs *signs;
	struct span_now now;
	struct {
		uint32_t stack, signs;
	} recent[SPAN_RECENT]; /* of stacks that came lately */

	uint64_t steps;		  /* Optimizer.step ranges that began */
	uint32_t forwards;	  /* passes that began, by the frames of stacks; */
	uint32_t backwards;	  /* by backward nodes; */
	uint32_t forwards_before; /* before the latest backward pass or optimizer's step was over */
	bool in_forward, in_backward;
	bool nodes;   /* some ran since backward() was called last */
	bool asked;   /* this backward pass began with torch.autograd.grad */
	bool stepped; /* the optimizer did, since the latest backward pass began */

	struct span *items;
	size_t count, room;
	bool ended;	 /* the program did, and not the recording alone */
	bool trains;	 /* a backward pass or an optimizer's step was seen */
	bool tags;	 /* autograd tells what it saves: other forward passes have no gradients */
	bool python;	 /* stacks have Python lines: without them the recording was paused */
	bool framework;	 /* its blocks are recorded: CUDA's calls do not count */
	uint64_t driver; /* 1 + thread that runs forward and the optimizer */
	uint64_t profiler;
	uint64_t optimized; /* the latest optimizer's range that had work */
	uint64_t closure;   /* the latest one that passes ran inside of */
	uint64_t state_seq; /* events up to it stand for what was there at the start */
	bool bare;	    /* only blocks that live at the end have stacks */
	uint64_t last_seq, last_ns;

	struct span_level **levels;
	size_t level_count, level_room;
	struct span_change *changes;
	size_t change_count, change_room;
	uint32_t change_free; /* 1 + a row that no span has any more; its `next` is another */

	struct map thread_ids, names; /* of ranges -> what they mean */
	struct span_thread **threads;
	size_t thread_count, thread_room;
	MAP_OF(struct step_end) step_ends; /* by number of the optimizer's range */
};

void spans_init(struct spans *s, const struct defs *defs, struct signs *signs);
void spans_free(struct spans *s);
/* Before anything else learns of the event: curves are as they were before it. */
void spans_event(struct spans *s, const struct gmt_event *e);

/* Keeps the way of a curve from here on. */
struct span_level *spans_add_level(struct spans *s, const uint64_t *now);
/* Fills in the extents: the bytes of that curve, and the times. NULL: no bytes. */
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
/* The thread is one of autograd's own. */
bool spans_is_engine(const struct spans *s, uint32_t thread);
/* The end of the Optimizer.step range `number`. */
struct step_end spans_step_end(const struct spans *s, uint64_t number);

extern const struct phase_words {
	const char *name; /* "zero_grad" */
	const char *text; /* "optimizer step" */
	const char *noun; /* "backward pass": after "the" */
	char letter;	  /* in a chart of characters */
} phases[PHASES];

/* a takes in b, which begins where it ended or overlaps it. */
void extent_join(struct extent *a, const struct extent *b);
