/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that would lower a run's peak, or would have made room for a refused request, and by
 * how many bytes. A finding has a plan: the lives that a change of the program would shorten,
 * remove or make smaller. For a peak the run's curve is computed again with the plan, and the
 * saving is the difference between the two peaks, wherever they are. For a refusal the saving
 * is what the plan removes at that event, judged by what had happened until then; the request
 * counts as a life that begins there. findings.def lists the findings.
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
	size_t order;	   /* order of discovery */
	const char *kind;  /* name of its row in findings.def */
	const char *words; /* name of the row with its words; NULL: that of its kind */
	enum finding_known known;
	struct owner owner; /* the line to change; no function = none */
	char what[ADVISE_TEXT], how[ADVISE_TEXT];
	struct life_plan plan;
	/* If the saving is a range: the plan of its lower end. */
	bool range;
	struct life_plan cautious;
	char setting[ADVISE_TEXT]; /* environment setting that a run can try; "" = none */
	bool about;    /* neither end is a bound, because autograd decides what is not recorded */
	bool sure;     /* left out if it might save nothing */
	bool others;   /* it is about further lines too */
	bool loaded;   /* some of its blocks were read from a file */
	bool reserved; /* about memory that the framework reserves, not about blocks */
	bool library;  /* about memory that a library takes, whatever the program's lines do */

	uint64_t bytes, blocks; /* of the blocks it is about, at the peak */
	uint64_t largest; /* bytes of the largest block, whose line is the owner: advise_name */
	/* for its words alone */
	uint64_t size;	      /* bytes of one of its tensors, or what others have at most */
	const char *function; /* what to change is of that function, or of its class */
	struct owner of;      /* the line that made the originals */

	struct claim measured; /* how often it was right: measured.def */
	uint64_t saves, least; /* least = saves where the saving is exact */
	uint64_t peak;	       /* remaining peak; for a refusal the highest before it */
};

/* The course of a life up to the moment. Times are event numbers. */
struct life_course {
	uint64_t released;    /* when the latest graph released it; 0 = never */
	uint64_t saved;	      /* when the latest graph saved it; 0 = never */
	uint64_t passed;      /* end of the last pass or optimizer's step that used it; 0 = none */
	uint64_t made, begun; /* begun: its first use in a pass; made: the last use before that */
	/* The event since which nothing uses it although it is alive: the end of the pass or
	 * optimizer's step of its last use. PLAN_END: it is still used, or that is not known. */
	uint64_t over;
	uint32_t later; /* the first pass, after the one of its birth, that had begun at a use; 0 =
			   none */
	uint32_t made_of;  /* 1 + the only large life that its first kernel reads; 0 = none */
	uint64_t computed; /* the latest kernel outside of passes, or collective, that used it */
	uint64_t written;  /* the latest copy into it; 0 = none */
	uint16_t
		classes; /* a bit for each class that it ever had; 0 = not counted on this device */
	bool unread;	 /* saved in a pass that no backward pass follows: find_no_grad.c */
	bool read;	 /* a backward node used it, since the latest graph saved it if one did */
	bool often;	 /* used in several passes after the one of its birth */
	bool shortened;	 /* a finding shortens it */
	bool loaded;	 /* it was read from a file and, in its last use, copied */
	bool copied;	 /* made_of is the source of a copy, not an argument of a kernel */
	bool watched;	 /* the current finding wants the work that uses it */
};

/* A life as the findings see it. */
struct advised {
	uint32_t life, stack, name;
	const struct position *born, *died; /* died: empty if it is alive at the end */
	uint64_t size, from, until; /* from, until: event numbers; PLAN_END = alive at the end */
	unsigned classes;
	bool wanted; /* the refused request, which begins at the refusal */
	struct life_course *course;
	size_t nth; /* position of ADVISE_EACH in the list of lives with classes */
};

#define ADVISE_WANTED 2

struct advise {
	struct timeline *timeline;
	const struct lives *lives;
	uint64_t peak,
		peak_seq; /* bytes and event of the peak; of a refusal: bytes with the request */
	const char *when; /* the moment, as words in a sentence */
	uint64_t least;	  /* findings below this many bytes are left out */
	uint64_t since;	  /* events before this one are ignored */
	uint64_t until;	  /* later events are not known; PLAN_END = all are */
	bool replays;
	bool no_backward; /* no backward pass followed passes like that of the request */
	bool open; /* the recording ends within the program, so live blocks might still be used */
	struct advised wanted[ADVISE_WANTED];
	size_t wanted_count;	     /* 0 = the question is about a peak */
	size_t steps;		     /* steps that end before the moment */
	struct repeats repeats;	     /* equal steps whose lives are skipped */
	struct life_course *courses; /* by life */
	uint8_t *counted;	     /* bit by life: its course has classes (advise_counted) */
	uint32_t *known;	     /* the lives with classes, in order */
	size_t known_count, known_room;
	struct advised *read; /* these lives; NULL = too many, and each is read when it is due */
	uint32_t (*next)[PHASES]; /* by span: the first span of each phase from there on */
	uint64_t reserved;	  /* most bytes that the framework had reserved */
	struct ops ops;
	struct sites sites;
	struct layers layers;
	struct advise_passes {
		struct advise_pass {
			uint64_t begin;	 /* by its first block; 0 = it made none */
			uint64_t end;	 /* event after its latest block */
			uint64_t walked; /* when backward released the last block of its graph; 0 =
					    never */
			bool kept;	 /* autograd saved a block of it */
			size_t after;	 /* number of the next pass, or the count of passes */
		} * items;
		size_t count;
	} passes;	  /* forward passes by number */
	struct map casts; /* by stack: whether autocast converts there */
	struct map sums; /* by stack of the script: how often it made a tensor of all results so far
			    from the one before */
	struct finding *items; /* the largest saving first */
	size_t count, room;
};

/* Whether the recording has what autograd saved. If not, nothing follows from a block that no graph
 * holds. */
bool advise_knows_graphs(const struct advise *a);

/* Whether steps are known, so that a block of an earlier step outlived an optimizer's step. Before
 * the first such step all passes might belong to one step; for a peak the rest of the run decides
 * that. */
bool advise_knows_steps(const struct advise *a);

/* Finds what lowers the highest peak. replays: also by replaying the requests, which reads the
 * recording again. */
void advise_open(struct advise *a, struct timeline *t, bool replays);
/* Finds what makes room for these requests, all refused at one event. held: bytes in use then;
 * least: smaller savings are left out. */
void advise_refused(struct advise *a, struct timeline *t, const struct advised *wanted,
		    size_t count, uint64_t held, uint64_t least);
/* Sorts the findings and drops the small ones. */
void advise_choose(struct advise *a);
void advise_close(struct advise *a);

/* Fills *out. False: the life is not counted, or never had one of these classes (bits). */
bool advise_life(const struct advise *a, uint32_t life, unsigned classes, struct advised *out);
uint32_t advise_lives(const struct advise *a); /* one more than the highest life */

/* Whether it ever had a class. Most lives of long runs have none, and their courses are on pages
 * that nothing has touched. */
static inline bool advise_counted(const struct advise *a, uint32_t life)
{
	return a->counted[life / 8] & 1u << life % 8;
}

/* Alive at the peak. */
bool advise_counts(const struct advise *a, const struct advised *l);
void advise_block(const struct advise *a, const struct advised *l, struct block *b);
/* Fills in the parts of courses that come from uses. */
void advise_find_over(struct advise *a);
struct owner advise_owner(struct advise *a, const struct advised *l);
/* The original of a copy or a conversion: the only large block that its first kernel reads. */
bool advise_made_of(const struct advise *a, const struct advised *copy, struct advised *original);
/* wide is twice as large, except for the allocator's rounding. */
bool advise_is_half(uint64_t narrow, uint64_t wide);
/* Calls look for each piece of work before the moment, with all lives that it touches. */
typedef void advise_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count);
void advise_works(const struct advise *a, advise_work *look, void *ctx);
/* The same for work that touches a watched life. Afterwards no life is watched. */
void advise_watched_works(const struct advise *a, advise_work *look, void *ctx);
/* Calls look for the work of each backward node, with all lives that it touches. Two successive
 * nodes of one kind might be reported as one. */
struct node_run {
	uint64_t begin, end; /* from its first block or work until its results are computed */
	uint32_t node;	     /* STRING of its name; 0 = one piece of work outside of any node */
};
typedef void advise_node(void *ctx, const struct node_run *run, const uint32_t *lives,
			 size_t count);
void advise_nodes(struct advise *a, advise_node *look, void *ctx);
/* Loops over the lives of these classes (bits), in order. */
#define ADVISE_EACH(a, of, l) \
	for (struct advised l = { 0 }; advise_following((a), (unsigned)(of), &l);)
bool advise_following(const struct advise *a, unsigned classes, struct advised *l);

/* Adds a finding of that kind with an empty plan. Valid until the next one. */
struct finding *advise_add(struct advise *a, const char *kind);
/* Fills in the words of findings.def, where its function wrote none. */
void advise_say(const struct advise *a, struct finding *f);
/* Removes the life from that event on, and counts its bytes if it is alive at the peak. */
void advise_without(const struct advise *a, struct finding *f, const struct advised *l,
		    uint64_t from);
/* Names the finding after the largest life that it is called with. */
void advise_name(struct advise *a, struct finding *f, const struct advised *l);
/* Adds bytes to the plan during each span of a phase. */
void advise_with_in(const struct advise *a, struct life_plan *p, enum phase phase, uint64_t bytes);
/* Formats a text of ADVISE_TEXT bytes. */
#define advise_put(text, ...) text_put((text), ADVISE_TEXT, __VA_ARGS__)

/* Number of spans that begin up to seq. */
size_t advise_spans_begun(const struct advise *a, uint64_t seq);
/* The largest number of forward passes with graphs that came before one backward pass. */
uint32_t advise_most_before_backward(const struct spans *s, uint64_t until);
/* First event of the next span of that phase that begins after seq; PLAN_END = none. */
uint64_t advise_next(const struct advise *a, uint64_t seq, enum phase phase);
/* A backward pass released it. */
bool advise_by_backward(const struct advise *a, const struct advised *l);
/* The latest graph that saved it still holds it, or did so until it was freed. */
bool advise_in_graph(const struct advised *l);
/* The program holds it for longer than any graph, so it stays whatever graphs do. */
bool advise_held(const struct advise *a, const struct advised *l);
void advise_find_passes(struct advise *a);
/* Number of the next pass, or the count of passes. */
size_t advise_pass_after(const struct advise *a, size_t pass);
/* Event at which the next pass begins; PLAN_END = there is none. */
uint64_t advise_pass_end(const struct advise *a, size_t pass);
/* Begin of the pass after the one that the block is for. A batch is made before its own pass. */
uint64_t advise_next_pass(const struct advise *a, const struct advised *l);
/* Bytes of the largest result of a log-softmax at the peak, 0 = none. *owner (or NULL): its line.
 * */
uint64_t advise_logits(struct advise *a, struct owner *owner);
/* Tags of the life (enum block_tag); 0 for a refused request. */
unsigned advise_tags(const struct advise *a, const struct advised *l);
/* It requires grad as a leaf. */
bool advise_leaf(const struct advise *a, const struct advised *l);
/* Autocast made it from an operator's argument. known: results for stacks, kept between calls. */
bool advise_is_by_autocast(struct timeline *t, const struct block *b);
bool advise_is_cast(struct timeline *t, struct map *known, uint32_t stack, uint64_t seq);
/* The weights are shards that are gathered for use (autograd then saves the gathered ones), or the
 * optimizer's state is sharded. */
bool advise_in_shards(struct advise *a);

/* Plans by the line of code that made the blocks. */

struct line_plan {
	struct owner owner;
	struct life_plan plan, cautious; /* cautious: optional */
	uint64_t bytes, blocks;		 /* removed at the peak */
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
/* Adds one finding for all lines that hold something at the peak, named by the largest line,
 * because one variable might hold blocks of several lines. Its lower end: the cautious plans, or
 * without them the blocks of the largest line. Frees the lines. */
struct finding *lines_add_all(struct line_plans *p, struct advise *a, const char *kind);
void lines_free(struct line_plans *p);

/* Values of CUBLAS_WORKSPACE_CONFIG, and what each leaves of a workspace. find_workspaces.c */
struct cublas_setting {
	const char *conf;
	uint64_t left;
};

/* The first that halves a workspace of so many bytes, or NULL. */
const struct cublas_setting *advise_cublas_setting(uint64_t bytes);
/* Whether a workspace with that stack is cuBLAS's; cuBLASLt's have another setting. */
bool advise_is_of_cublas(struct timeline *t, uint32_t stack, uint64_t seq);

/* Each looks for one kind of finding and adds what it finds. */
typedef void advise_find(struct advise *a);
#define FINDING(kind, find, needs, what, how) advise_find find;
#define NAME(kind, what, how)
#define VARIANT(name, what, how)
#include "findings.def"
