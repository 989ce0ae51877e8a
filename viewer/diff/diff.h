/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two recordings side by side. Blocks alive at a moment of one and at a similar moment of the other
 * are paired by class and call path. Differences are summed up as findings, the most important
 * first.
 */
#pragma once

#include "../base/emit.h"
#include "diff_side.h"

enum diff_kind { DIFF_GROWN, DIFF_SHRUNK, DIFF_NEW, DIFF_GONE, DIFF_MOVED };

/* Causes of findings. */
enum diff_cause {
#define CAUSE(cause, name, say) CAUSE_##cause,
#include "diff_causes.def"
};

/* A call path on both sides, or on one of them only. */
struct diff_pair {
	unsigned category;
	const struct diff_site *old_site, *new_site; /* NULL = none */
	const uint64_t *old_sizes, *new_sizes;	     /* sizes of its blocks, ascending */
	uint64_t bytes_old, bytes_new, blocks_old, blocks_new;
	uint64_t unused_old, unused_new; /* bytes, as in struct diff_row */
	uint64_t idle_old, idle_new;
	uint32_t finding; /* 1 + index, 0 = none yet */
	bool remainders;  /* differs only by rounding remainders */
	double at;	  /* place in the order of births, 0 to 1 */
};

struct diff_finding {
	enum diff_kind kind;
	enum diff_cause cause;
	unsigned category;
	struct owner owner;
	uint64_t bytes_old, bytes_new, blocks_old, blocks_new;
	double factor;	/* of CAUSE_SCALE and CAUSE_PRECISION */
	uint64_t count; /* of CAUSE_ELEMENTS: parameters that are cast */
	bool square;	/* some of it grows by the factor's square */
	char *text;
	size_t pair; /* the pair that gave class and owner */
	uint32_t id; /* equal to `finding` of its pairs */
};

struct diff {
	struct diff_side old, new;
	bool below_peak; /* the compared moments are not the peaks, because little differs there */
	/* Comparisons that the recordings' settings rule out (diff_settings.c). */
	bool no_classes, no_lines; /* no_lines: no classes either */
	bool no_nodes;		   /* backward nodes have no names on one side */
	bool no_operators;	   /* operators have no names on one side */
	struct diff_pair *pairs;
	size_t pair_count, pair_room;
	struct diff_finding *findings;
	size_t count, room;
};

/* Returns 0; or an exit code after one error message, with nothing to free. */
int diff_make(struct diff *d, const char *old_path, const char *new_path, long device);
void diff_free(struct diff *d);

/* Gives matching lines of both sides the same number, even if they moved. */
void diff_align(struct diff_side *old, struct diff_side *new);
bool diff_like_work(const struct diff_place *a, uint64_t largest_a, const struct diff_place *b,
		    uint64_t largest_b);
/* Candidates to be paired. */
struct diff_match {
	size_t old, new;
	double score;
};
/* The best first, independent of which side is the old one. */
void diff_sort_matches(struct diff_match *all, size_t count);
void diff_pair_rows(struct diff *d);
void diff_find(struct diff *d);

/* Shared by the files that make findings. */
/* A large block can exceed its request by up to this much, if the remainder is too small to be
 * used. That is chance, and no change of the program. */
#define DIFF_REMAINDER 1048576
bool diff_like_size(uint64_t a, uint64_t b); /* apart from such a remainder */
bool diff_like_sizes(const uint64_t *a, const uint64_t *b, uint64_t count);
#define DIFF_SMALLEST 512 /* the allocator rounds up to this */
/* The power of two by which all blocks of one sorted list are larger, among those large enough to
 * measure; 0 = there is none. */
double diff_power_of_two(const uint64_t *x, const uint64_t *y, uint64_t count);
int64_t diff_delta(const struct diff_pair *p);
uint64_t diff_size(const struct diff_pair *p); /* size of the change, without its sign */
/* On the new side, if it exists there, else on the old one. */
const struct diff_site *diff_site_of(const struct diff_pair *p);
const struct owner *diff_owner(const struct diff_pair *p);
/* Whether they have a line in common (or a function, if !line), on any side. Independent of which
 * side is the old one. */
bool diff_same_place(const struct diff *d, const struct diff_pair *a, const struct diff_pair *b,
		     bool line);
bool diff_differs(const struct diff_pair *p); /* and is in no finding yet */
/* Classes of results of passes, which casts or another number of passes change. */
#define DIFF_OF_PASSES \
	(CLASS_BIT(activations) | CLASS_BIT(forward_temporaries) | CLASS_BIT(backward_temporaries))

/* Selects the pairs of a cause, and says how their finding is named. */
struct diff_rule {
	enum diff_cause cause;
	int direction;	  /* 1: only pairs that grew, -1: that shrank, 0: both */
	uint32_t classes; /* only pairs of these classes (bits); 0 = of all */
	/* Only pairs for which this is true; NULL = all. */
	bool (*takes)(const struct diff *d, const struct diff_pair *p, const void *facts);
	const void *facts; /* passed to takes */

	uint32_t named_by;	  /* its name comes from the largest of these classes; 0 = of all */
	const struct owner *line; /* names the finding instead, if it is a line; NULL = none */
	bool line_if_none;	  /* use `line` only if the pairs have none */
	double factor;		  /* these as in struct diff_finding */
	uint64_t count;
	bool square;
};

/* Makes a finding of the pairs that differ and that the rule takes; none if there are no such
 * pairs. */
void diff_collect(struct diff *d, const struct diff_rule *rule);
/* Makes a finding without pairs. */
struct diff_finding *diff_new_finding(struct diff *d, enum diff_cause cause);
void diff_add_pair(struct diff_finding *f, struct diff_pair *p);
void diff_causes(struct diff *d);
/* diff_passes.c, maximum over the steps: gradients that arrived at parameters, backward passes. */
uint64_t diff_gradients(const struct diff_side *s);
unsigned diff_backwards(const struct diff_side *s);
void diff_say(struct diff *d, struct diff_finding *f);

/* Whether gradients were seen, or a backward pass that could make them. */
bool diff_has_gradients(const struct diff_side *s);
/* Whether only one side clears gradients between its steps. */
bool diff_keeps_gradients(const struct diff *d);

/* Bytes at the compared moments by module, or by class and line, the greatest change first. */
enum diff_by { DIFF_BY_MODULE, DIFF_BY_LINE };

struct diff_groups {
	struct diff_group {
		const char *module; /* "Net/Block", of the recording's functions; "" = by line */
		unsigned category;
		const struct diff_site *old_site, *new_site; /* one of each, NULL = none */
		uint64_t bytes_old, bytes_new, blocks_old, blocks_new;
		size_t order; /* among groups with equal changes */
	} * items;
	size_t count, room;
};

struct diff_groups diff_group(const struct diff *d, enum diff_by by);
void diff_groups_free(struct diff_groups *g);

/* Optional parts of a recording. */
enum diff_setting { DIFF_PYTHON, DIFF_NATIVE, DIFF_TAGS, DIFF_SETTINGS };

/* "recorded", "not recorded", or "" if unknown. */
const char *diff_recorded(const struct defs *d, enum diff_setting setting);
void diff_find_settings(struct diff *d);
/* Names what cannot be compared and why, in sentences; "" if everything can be. Returns buf. */
#define DIFF_NOT_COMPARED 400
const char *diff_not_compared(const struct diff *d, char *buf, size_t room);

/* Differences of the environment: torch, device, settings. */
struct diff_ground {
	const char *what;
	char old[160], new[160];
};

#define DIFF_GROUNDS 9
size_t diff_grounds(const struct diff *d, struct diff_ground out[DIFF_GROUNDS]);

const char *diff_kind_name(enum diff_kind kind);
const char *diff_cause_name(enum diff_cause cause);
/* Passes or steps were seen, so the run has phases. */
bool diff_has_phases(const struct diff *d);
/* "Peak 1.0 GiB -> 1.1 GiB: +102.4 MiB (+10.0 %), in the backward" */
const char *diff_headline(const struct diff *d, char *buf, size_t room);
const char *diff_percent(char buf[48], uint64_t before, uint64_t after); /* "+12.5 %" */
