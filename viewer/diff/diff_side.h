/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the two recordings: its steps, its call paths in terms that can be compared with the
 * other's, and the blocks alive at a moment, summed up by class and call path.
 */
#pragma once

#include "../answers/leaks.h"
#include "../answers/reserved.h"
#include "../moments/snapshot.h"

#define DIFF_TOKENS 24 /* per line; others are dropped */

/* A function of the program's or the model's own code. */
struct diff_function {
	const char *file, *name;
	unsigned first_line;
	uint32_t common;  /* equal for matching functions of both sides */
	uint32_t *places; /* its lines */
	size_t count, room;
	uint32_t partner; /* 1 + function on the other side, in diff_align */
};

/* A line of a function, and hashes of the names that it calls. */
struct diff_place {
	uint32_t function;
	unsigned line;
	uint64_t tokens[DIFF_TOKENS];
	unsigned token_count;
	uint64_t largest; /* its own largest block */
	uint64_t text;	  /* hash of the statement, 0 = not known */
	uint64_t target;  /* hash of the name that it assigns to, or of its first word */
	uint32_t common;  /* equal for matching lines of both sides */
};

/* A call path: lines from the outermost inwards, then the call of the innermost one. */
struct diff_site {
	uint32_t *places;
	unsigned depth;
	const char *outer, *op; /* the framework's functions: the first one called, the innermost */
	char *operator;		/* PyTorch operator that the line called, "" = unknown */
	struct owner owner;
	struct owner caller; /* the line that called the outermost forward method, file "" = none */
	uint32_t signs;	     /* enum stack_sign */
	char *module;	     /* "Net/Block/Attention" from the forward methods on it; "" = none */
};

struct diff_row {
	unsigned category;
	uint32_t site;
	uint64_t bytes, blocks;
	uint64_t unused; /* bytes saved for a backward pass that never came */
	uint64_t idle;	 /* bytes of models that are no longer trained, and of their state */
	uint64_t first_seq;
	double at;     /* its place in the order of birth, 0 to 1 */
	size_t sizes;  /* sizes of its blocks, ascending: index in the shot's sizes */
	uint32_t pair; /* 1 + index, 0 = not paired yet */
};

/* The blocks alive after an event. */
struct diff_shot {
	uint64_t seq, time_ns, total;
	uint64_t trained; /* bytes of the parameters that will get a gradient */
	enum phase phase;
	size_t step;
	struct owner latest; /* line of the most recent activation; file "" = none */
	size_t passes;	     /* forward passes whose results are alive */
	uint64_t dropped;    /* results of forward passes that no backward pass follows */
	uint64_t bytes[CATEGORIES];
	struct diff_row *rows;
	size_t count, room;
	uint64_t *sizes; /* of all blocks, row by row, ascending in each row */
	struct map ids;	 /* class and site -> row */
};

struct diff_side {
	struct recording recording;
	struct timeline timeline;
	uint64_t peak, peak_seq;
	struct reserved_peak reserved;
	bool recomputes; /* checkpointing was seen */
	bool compiled;	 /* the model was compiled by torch.compile */
	struct leaks leaks;
	struct diff_shot at_peak, shot; /* shot: the compared moment */
	bool casts;			/* some results were cast, as by autocast */

	struct diff_function *functions;
	size_t function_count, function_room;
	struct diff_place *places;
	size_t place_count, place_room;
	struct diff_site *sites;
	size_t site_count, site_room;
	struct map function_ids, place_ids, site_ids, stack_ids;
};

static inline uint64_t diff_apart(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* Returns 0; or an exit code after one error message, with nothing to close. */
int diff_side_open(struct diff_side *s, const char *path, long device);
void diff_side_close(struct diff_side *s);

void diff_shot_take(struct diff_shot *out, struct diff_side *s, uint64_t seq);
void diff_shot_free(struct diff_shot *shot);

/* The innermost line of a call path; NULL: it has none. */
static inline const struct diff_place *diff_innermost(const struct diff_side *s,
						      const struct diff_site *site)
{
	return site->depth ? &s->places[site->places[site->depth - 1]] : NULL;
}

enum phase diff_phase_at(const struct diff_side *s, uint64_t seq);
/* diff_moments.c: the span of that phase with the highest peak, NULL = none. */
const struct span *diff_highest(const struct diff_side *s, enum phase phase);
/* The span on this side that matches the one of `seq` on the other: of the same phase, and at the
 * same place of a step if steps have equally many. Of several the highest, or one nearly as high
 * and nearer. NULL: none. */
const struct span *diff_span_like(const struct diff_side *s, const struct diff_side *other,
				  uint64_t seq);
/* The moment in that span that matches `seq` on the other side: about as far in it, and there the
 * highest, or nearly as high and of the same line or backward node. */
uint64_t diff_moment_like(struct diff_side *s, const struct span *span, struct diff_side *other,
			  uint64_t seq);
/* Spans at the same place of the same step whose peaks differ most. */
struct diff_spans {
	const struct span *old, *new;
	uint64_t apart; /* 0 = none */
};
struct diff_spans diff_furthest_apart(const struct diff_side *old, const struct diff_side *new);
