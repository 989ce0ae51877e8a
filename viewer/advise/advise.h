/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would lower a run's peak, or would have made room for a request that was refused, and by how
 * much. A finding says which lives a change of the program would shorten, take away or make smaller
 * (a plan). For a peak the run is computed with these lives: its peak, wherever that would be, is
 * the promise. For a refusal it is what the plan has less at that event, by what had happened till
 * then; the request is a life that begins there. Findings stand in findings.def.
 */
#pragma once

#include "../base/human.h"
#include "../answers/document.h"
#include "../answers/parts.h"
#include "../recording/owner_words.h"
#include "ops.h"
#include "plan.h"
#include "sites.h"

#define ADVISE_TEXT 600

enum finding_known { KNOWN_computed, KNOWN_replayed, KNOWN_run };

struct finding {
	size_t order;	  /* in which it was found */
	const char *kind; /* its row's name in findings.def */
	enum finding_known known;
	struct owner owner; /* that the change is about; no function = none */
	char what[ADVISE_TEXT], how[ADVISE_TEXT];
	struct life_plan plan;
	/* Where what is saved is not exact: the other end, of a plan that promises less. */
	bool range;
	struct life_plan cautious;
	char setting[ADVISE_TEXT]; /* of the environment, that a run can try; "" = none */
	bool about;    /* neither end is a bound: autograd decides what a recording does not say */
	bool sure;     /* it is not said if it may save nothing */
	bool reserved; /* it is about what the framework's cache holds, not about blocks */

	uint64_t bytes, blocks; /* that it is about, there at the peak */
	uint64_t largest;	/* block: its line is the owner, see advise_name */
	struct claim measured;	/* in measured.def */
	uint64_t saves, least;	/* least: as much as saves where it is exact */
	uint64_t peak;		/* that is left; before a refusal: the highest then */
};

/* A life's course up to the moment. */
struct life_course {
	uint64_t released;    /* when the latest graph let it go, 0 = never, */
	uint64_t saved;	      /* and when the latest one took it */
	uint64_t passed;      /* behind the last pass, or optimizer's step, that used it; 0: none */
	uint64_t made, begun; /* the latest work on it before the first one of a pass; that one */
	/* The event since which nothing uses it, though it is there: behind the pass, or the
	 * optimizer's step, of its last use. PLAN_END: it is used, or that is not known. */
	uint64_t over;
	uint32_t later; /* the first pass behind that of its birth that had begun at a use, 0: none
			 */
	uint32_t made_of;  /* 1 + the only large block that the first work of it reads, 0 = none */
	uint64_t computed; /* the latest kernel on it outside of passes, or collective, */
	uint64_t written;  /* and the latest copy into it; 0: none */
	uint16_t classes;  /* a bit for each class that it ever was of; 0: it does not count on this
			      device */
	bool read;	   /* by a backward node, since the latest graph took it if any did */
	bool often;	   /* it was used in several such passes */
	bool shortened;	   /* by a finding so far */
	bool copied;	   /* made_of: by a copy, no kernel */
};

/* A life as findings ask of it. */
struct advised {
	uint32_t life, stack, name;
	const struct position *born, *died; /* died: the empty one if it did not end */
	uint64_t size, from, until;	    /* events; until: PLAN_END = it did not end */
	unsigned classes;
	bool wanted; /* it would have begun, at a refusal */
	struct life_course *course;
	size_t nth; /* for ADVISE_EACH: lives up to this one, in the list of those with classes */
};

#define ADVISE_WANTED 2

struct advise {
	struct timeline *timeline;
	const struct lives *lives;
	uint64_t peak, peak_seq; /* bytes; or those of a refusal, with what was wanted */
	const char *when;	 /* that is, in a sentence */
	uint64_t least;		 /* fewer bytes are not worth a word */
	uint64_t since;		 /* what came before is not looked at */
	uint64_t until;		 /* what came later is not known; PLAN_END = nothing did */
	bool replays;
	bool open; /* it ends in the middle of the program: what is there then may still be used */
	struct advised wanted[ADVISE_WANTED];
	size_t wanted_count;	     /* 0: it is about a peak */
	size_t steps;		     /* of the lives that are known */
	struct repeats repeats;	     /* steps whose lives are not looked at */
	struct life_course *courses; /* of each life */
	uint32_t *known;	     /* the lives that have classes, in order */
	size_t known_count, known_room;
	uint32_t (*next)[PHASES]; /* of each span: the first of each phase from it on */
	uint64_t reserved;	  /* the most that the framework's cache held */
	struct ops ops;
	struct sites sites;
	struct layers layers;
	struct advise_passes {
		struct advise_pass {
			uint64_t begin; /* by the first block that was made after it; 0: none was */
			uint64_t end;	/* behind the latest block that was made in it */
			uint64_t walked; /* when backward let go of the last block of its graph; 0:
					    never */
			bool kept;	 /* autograd saved something of it */
			size_t after;	 /* the next pass that began, or their count */
		} * items;
		size_t count;
	} passes;	  /* forward passes by their numbers */
	struct map casts; /* stacks: whether autocast converts there */
	struct map sums;  /* stacks of the script that make a tensor of all results so far, each of
			    the one before -> how often */
	struct finding *items; /* the largest first */
	size_t count, room;
};

/* Whether what autograd saved is recorded: else nothing follows from that no graph holds a tensor.
 */
bool advise_knows_graphs(const struct advise *a);

/* What was made in one step and is there in a later one outlived an optimizer's step. Before the
 * first of these all passes may be of one step: of a peak that is known from the rest. */
bool advise_knows_steps(const struct advise *a);

/* Findings about the highest peak; replays: also by replays of the requests, for which the
 * recording is read again. */
void advise_open(struct advise *a, struct timeline *t, bool replays);
/* Of the refusal of these, all at one event; held: bytes then, least: that are worth a word. */
void advise_refused(struct advise *a, struct timeline *t, const struct advised *wanted,
		    size_t count, uint64_t held, uint64_t least);
/* Sorts the findings, the small ones go. */
void advise_choose(struct advise *a);
void advise_close(struct advise *a);

/* False: it does not count, or was never of one of these classes (bits). */
bool advise_life(const struct advise *a, uint32_t life, unsigned classes, struct advised *out);
uint32_t advise_lives(const struct advise *a); /* their numbers are below it */
/* It is there at the peak. */
bool advise_counts(const struct advise *a, const struct advised *l);
void advise_block(const struct advise *a, const struct advised *l, struct block *b);
/* Fills in what uses say of courses. */
void advise_find_over(struct advise *a);
struct owner advise_owner(struct advise *a, const struct advised *l);
/* The original of a copy or a conversion: the only large block that its first kernel reads. */
bool advise_made_of(const struct advise *a, const struct advised *copy, struct advised *original);
/* It was twice as large, or half, but for what the allocator leaves. */
bool advise_is_half(uint64_t narrow, uint64_t wide);
/* Each piece of work before the moment, with all lives that it touches. */
typedef void advise_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count);
void advise_works(const struct advise *a, advise_work *look, void *ctx);
/* The work of a backward node, with the lives of any class that it touches. Two nodes of one kind
 * may be one. */
struct node_run {
	uint64_t begin, end; /* from its first block or work until its results are computed */
	uint32_t node;	     /* STRING of its name; 0: work outside of any, each alone */
};
typedef void advise_node(void *ctx, const struct node_run *run, const uint32_t *lives,
			 size_t count);
void advise_nodes(struct advise *a, advise_node *look, void *ctx);
/* Each life of one of these classes, in order. */
#define ADVISE_EACH(a, of, l) \
	for (struct advised l = { 0 }; advise_following((a), (unsigned)(of), &l);)
bool advise_following(const struct advise *a, unsigned classes, struct advised *l);

/* "forward net.py:12", the line that a finding is about. */
#define ADVISE_LINE(f)                                                                            \
	((f)->owner.function ? owner_words(&(f)->owner, (char[OWNER_WORDS]){ 0 }, OWNER_WORDS, 0) \
			     : "this line")

/* A finding of that kind, with the words of findings.def, without any plan. */
struct finding *advise_add(struct advise *a, const char *kind);
/* Leaves the life out from the event on. Counts it, if it is there at the peak. */
void advise_without(const struct advise *a, struct finding *f, const struct advised *l,
		    uint64_t from);
/* Names the finding after the largest of these. */
void advise_name(struct advise *a, struct finding *f, const struct advised *l);
/* Adds those bytes while a phase is at work. */
void advise_with_in(const struct advise *a, struct life_plan *p, enum phase phase, uint64_t bytes);
/* A text in the manner of printf. */
#define advise_put(text, ...) text_put((text), ADVISE_TEXT, __VA_ARGS__)

/* Spans that begin up to the event. */
size_t advise_spans_begun(const struct advise *a, uint64_t seq);
/* The first event of the next span of that phase that begins after the event; PLAN_END = none. */
/* The most forward passes that autograd saved of and that one backward pass came after. */
uint32_t advise_most_before_backward(const struct spans *s, uint64_t until);
uint64_t advise_next(const struct advise *a, uint64_t seq, enum phase phase);
/* A backward pass let it go. */
bool advise_by_backward(const struct advise *a, const struct advised *l);
/* The latest graph that took it has it, or had it to its end. */
bool advise_in_graph(const struct advised *l);
/* The program has it for longer than any graph: it stays, whatever is done about those. */
bool advise_held(const struct advise *a, const struct advised *l);
void advise_find_passes(struct advise *a);
/* The next pass that began; the number of passes if there is none. */
size_t advise_pass_after(const struct advise *a, size_t pass);
/* When that one begins; PLAN_END if there is none. */
uint64_t advise_pass_end(const struct advise *a, size_t pass);
/* When the next pass begins after the one that a block is for: a batch is made before its own. */
uint64_t advise_next_pass(const struct advise *a, const struct advised *l);
/* The largest result of a log-softmax that is there at the peak, 0 = none; its line, if asked. */
uint64_t advise_logits(struct advise *a, struct owner *owner);
/* A life's tags (enum block_tag); 0 where the life is not recorded. */
unsigned advise_tags(const struct advise *a, const struct advised *l);
/* Autograd asked it for a gradient. */
bool advise_leaf(const struct advise *a, const struct advised *l);
/* Autocast made it of what an operator was given; known: what was found of stacks before. */
bool advise_is_by_autocast(struct timeline *t, const struct block *b);
bool advise_is_cast(struct timeline *t, struct map *known, uint32_t stack, uint64_t seq);
/* The weights are shards, which are gathered where they are used (autograd saves what was
 * gathered); or the optimizer's state is. */
bool advise_in_shards(struct advise *a);

/* Plans by the line of code that made the blocks. */

struct line_plan {
	struct owner owner;
	struct life_plan plan, cautious; /* cautious: for who has one */
	uint64_t bytes, blocks;		 /* gone at the peak */
	size_t lines;			 /* see find_pairs.c */
};

struct line_plans {
	struct map ids; /* stack and backward node -> index */
	struct line_plan *items;
	size_t count, room;
};

struct line_plan *lines_of(struct line_plans *p, struct advise *a, const struct advised *l);
/* Leaves the life out from the event on. */
void lines_without(struct line_plans *p, struct advise *a, const struct advised *l, uint64_t from);
/* Adds a finding of all lines that held something at the peak, named by the largest: one variable
 * may hold what several lines made. At least what cautious plans save, or without them the largest
 * line's blocks. Frees the lines. */
struct finding *lines_add_all(struct line_plans *p, struct advise *a, const char *kind);
void lines_free(struct line_plans *p);

/* Each looks for what it is about and adds what it finds. */
typedef void advise_find(struct advise *a);
#define FINDING(kind, find, needs, what) advise_find find;
#define NAME(kind, what)
#include "findings.def"
