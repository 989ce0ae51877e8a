/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An out-of-memory failure: the request, the free memory, the holders of the rest, the cause, and
 * the changes that would have made the request fit. Facts come from the recording alone. Two tables
 * draw the conclusions: oom_causes.def and oom_remedies.def. Sizes are in bytes.
 */
#pragma once

#include "../answers/large_line.h"
#include "../answers/holders.h"
#include "../answers/leaks.h"
#include "../answers/parts.h"
#include "../answers/unclassed.h"
#include "../answers/used.h"
#include "../base/human.h"
#include "../answers/document.h"
#include "../moments/refusals.h"
#include "../moments/room.h"
#include "../moments/snapshot.h"
#include "../moments/timeline.h"
#include "../replay/replay_trial.h"
#include "../answers/private_pools.h"
#include "../recording/owner_words.h"
#include "../recording/variables.h"

/* Outliers: the largest block that the passes made, and the blocks like it. */
struct oom_spike {
	uint64_t largest, next; /* the largest outlier, and the largest of the other blocks */
	uint64_t bytes, least;	/* sum of the outliers and the request, and the smallest of them */
	uint64_t unsaved;	/* part of `bytes` that no graph saves; 0 if there are many */
	size_t count, others;
	struct owner owner;
};

#define OOM_LATEST     (1u << 16) /* latest lives that are searched for a line's habit */
#define OOM_SPIKE_MOST 8	  /* more blocks than this are no outliers */

#define OOM_SETTINGS  8
#define OOM_VARIABLES 64
#define OOM_TEXT      600

/* Settings of PyTorch's allocator, each replayed until the refusal. */
struct oom_settings {
	struct oom_setting {
		const char *conf;
		struct replay_refusal outcome;
	} tried[OOM_SETTINGS]; /* the settings whose outcome is known */
	size_t count;
	const struct oom_setting *fits; /* the first with which the request fits, or NULL */
	struct replay_refusal own;	/* outcome with the recording's own setting */
	char conf[160];			/* the recording's own setting */
	bool less_workspace;		/* it fits with `conf` and smaller cuBLAS workspaces */
	char why[SETTINGS_WHY];		/* why none was tried; "" = none could help */
};

struct oom {
	struct refusal refusal;
	struct timeline *timeline; /* of the device that ran out */
	struct timeline own;	   /* filled by oom_open only */
	struct snapshot shot;	   /* of the moment after the refusal */
	struct leaks leaks;
	struct unclassed unclassed;
	struct used_up unused;	/* blocks unused for long, without those that grow */
	uint64_t unused_saved;	/* part of `unused` that graphs hold */
	struct used_up earlier; /* weights, gradients and state of a model that ran before */
	uint64_t begun; /* seq: first use of any weight that this step uses; 0 = not known */

	struct use_around *around;     /* uses of each block of `shot` */
	uint32_t works;		       /* row of the latest work before the refusal */
	uint64_t dropped;	       /* events lost because the recorder had no room */
	bool state_only;	       /* a snapshot without a history, so without refusals */
	char no_plan[OOM_TEXT];	       /* without a refusal: oom_no_plan */
	uint64_t asked;		       /* request of the framework to the device */
	uint64_t block;		       /* request of the program to the framework */
	struct block wanted;	       /* the block that the request would have become */
	uint32_t wanted_signs;	       /* signs of the request's stack */
	enum block_stage wanted_stage; /* stage of the requesting thread */
	struct owner wanted_owner;
	struct instant instant;
	enum phase phase;

	struct room room; /* in the cache and on the device */
	struct pool_sums pools;
	uint64_t allocated;
	uint64_t libraries; /* this program's allocations outside of the framework */
	uint64_t context;  /* in use on the device by no recorded call: contexts, other processes */
	uint64_t others;   /* part of `context` beyond what one context takes */
	uint64_t capacity; /* reserved and free bytes: the most that the framework could have */

	uint64_t lasting; /* parameters, gradients, optimizer state and temporaries, buffers */
	uint64_t batch[CATEGORIES]; /* blocks whose size grows with the batch, by class */
	uint64_t passing;	    /* sum of `batch` */
	struct map copies;	    /* birth events of weights that autocast converted */
	struct map listed;	    /* birth events of outputs that are kept of many calls */
	uint64_t computed;	    /* gradients that the script computed from others */
	uint64_t trainable;	    /* parameters that require grad */
	uint64_t loaded;	    /* a checkpoint's weights that were copied into the model */
	uint64_t state;		    /* optimizer state made in an optimizer's step */
	uint64_t projected;   /* state that the optimizer will make; 0 = its kind is not known */
	uint64_t unsharded;   /* gathered parameters, and buffers of collectives */
	uint64_t grown;	      /* blocks of earlier steps at lines that grow */
	uint64_t grown_graph; /* part of `grown`: graphs, and outputs of modules */
	uint64_t grown_saved; /* part of `grown` that graphs hold, where graphs are recorded */
	struct oom_held {
		uint64_t bytes, from;
		struct block largest;
	} attempts;	   /* graphs of passes that ran out of memory before; oom_passes.c */
	struct block root; /* a kept graph's last tensor, from an earlier step */
	struct oom_left {
		struct map blocks; /* their birth events */
		uint64_t bytes;
		struct oom_held call; /* outputs of earlier calls that this call did not use */
		bool gathered;	      /* by an evaluation, which might read all at its end */
	} left;			      /* unused results of earlier passes; oom_left.c */
	struct holders holders;
	struct oom_spike spike;

	uint64_t current;   /* part of `passing` made in this step */
	uint64_t by_script; /* part of it and of the request that the script made outside of modules
			     */
	uint64_t begin;	    /* seq: the step's first event */
	uint64_t since;	    /* seq: older blocks were made in earlier steps */
	uint64_t batch_from; /* seq: inputs made after it might belong to this step's batch */
	struct {
		size_t steps; /* earlier steps compared; 0 = this step's inputs are not larger */
		uint64_t inputs, before; /* this step's inputs, and the most of an earlier step */
		uint64_t peak;		 /* the highest of the compared steps */
	} longer;
	struct {
		uint64_t bytes;	   /* made under vmap, with the request; 0 = no vmap */
		struct owner call; /* the script's call of torch.func; no file = not known */
		bool saved;	   /* a graph holds some of the bytes */
	} rows;
	bool by_call;	     /* memory is compared by call of the model: no backward pass so far */
	size_t passes;	     /* forward passes of this step whose results are held */
	uint64_t calls;	     /* in graphs of all passes but the latest, if no backward pass came */
	bool read_each;	     /* nearly every pass copied a result to the host */
	bool served;	     /* passes without a graph used results of passes with one */
	uint64_t evaluation; /* seq: start of the evaluation that ran out of memory; 0 = none */
	bool no_backward;    /* no backward pass followed passes like this one; oom_remedies.c */
	uint64_t of_pass;    /* held bytes made by the latest forward pass */
	size_t at_step;	     /* item of `steps` with the refusal; 0 = before the first step */
	/* The first step whose blocks might still be needed. It lies before at_step if the steps
	 * between might be parts of one update that is not over. */
	size_t since_step;
	size_t compared_step;			     /* an earlier step that ended; 0 = none */
	uint64_t compared[CATEGORIES];		     /* by class, at that step's peak */
	unsigned world;				     /* number of ranks; 1 if not known */
	bool sharded;				     /* gradients of shards were reduced before */
	bool collective;			     /* a collective made the request */
	struct variable_at variables[OOM_VARIABLES]; /* the largest first */
	size_t variable_count, variables_shown;	     /* all, and the large ones */
	uint64_t samples;			     /* in the batch: variables_first_size */
	struct oom_settings settings;		     /* filled by oom_answer */
	struct oom_engine {
		const char *phase;  /* NULL = no serving engine */
		struct owner owner; /* the function that names the phase, or the request's line */
		uint64_t cache;	    /* its KV cache and the request for it */
		size_t pieces;	    /* blocks of the cache */
		bool named;	    /* function names show an engine */
		bool wanted;	    /* the request is for the cache */
		bool samples;	    /* it computed logits or sampled tokens */
	} engine;
};

enum oom_cause {
#define CAUSE(name) CAUSE_##name,
#include "oom_causes.def"
	OOM_CAUSES
};

void oom_engine(struct oom *o); /* oom_engine.c */
/* Appends to a buffer of OOM_TEXT bytes. */
#define oom_say(text, ...) text_put((text), OOM_TEXT, __VA_ARGS__)
/* Whether growth is reported from pass to pass or from step to step. */
#define BY_LEFT(o)	((o)->left.bytes && (o)->left.bytes >= (o)->grown / 2)
#define BY_PASS(o)	((o)->by_call || BY_LEFT(o))
#define PASS_OR_STEP(o) (BY_PASS(o) ? "pass" : "step")
#define WHO(o)		owner_words(o, (char[OWNER_WORDS]){ 0 }, OWNER_WORDS, 0)

struct oom_remedy {
	const char *name;
	struct claim claim; /* how often it was right: docs/conclusions.md */
	uint64_t saves;
	bool at_most; /* `saves` is the upper end of a range that begins with 0 */
	bool depends; /* on a condition that the recording does not decide */
	bool enough;  /* with it the request would have fit */
	bool answers; /* it removes the cause */
	char what[OOM_TEXT], how[OOM_TEXT];
};

#define OOM_REMEDIES 16

/* Whether the remedy names no line of the program. oom_remedies.c */
bool oom_remedy_is_general(const char *name);

/* oom_requests.c */
typedef uint64_t remedy_fn(const struct oom *o, char *what, char *how);
#define REMEDY(name, ...) remedy_fn remedy_##name;
#define FOUND(...)
#include "oom_remedies.def"
#undef REMEDY
#undef FOUND
/* A library chose the size of the request, and it might work with less. */
bool oom_is_up_to_the_library(const struct oom *o);

/* Fills *o with the recording's nth refusal (0 = the last one); oom_close frees it. Returns 0, or
 * the exit code after an error message. o->refusal.nth is 0 if there is no such refusal. */
int oom_open(struct oom *o, struct recording *r, uint64_t nth);
/* The same with a timeline of the refusal's device that is open. *o must be all zeros. */
void oom_look(struct oom *o, struct timeline *t, const struct refusal *refusal);
void oom_close(struct oom *o);
void oom_holders(struct oom *o);			  /* holders, spike: oom_holders.c */
const struct holder *oom_grown_most(const struct oom *o); /* NULL = no line grows */
void oom_attempts(struct oom *o);			  /* oom_passes.c */
uint32_t oom_pass_at(const struct oom *o, uint64_t seq);  /* number of the latest pass at seq */
void oom_find_longer(struct oom *o);			  /* oom_longer.c */
void oom_find_rows(struct oom *o);			  /* oom_rows.c */
void oom_left(struct oom *o);				  /* oom_left.c */
/* The value of since_step. oom_steps.c */
size_t oom_since_step(const struct oom *o);
/* The value of by_call: calls of a model before any backward pass, none of which a graph holds. */
bool oom_by_call(const struct oom *o);
/* The step, or call of the model, that separates earlier blocks from current ones. */
static inline size_t oom_number(const struct oom *o)
{
	return o->by_call ? o->at_step : o->since_step;
}
/* A step begins with its batch. The batch might be made before zero_grad clears the previous
 * gradients or, without an optimizer, before the first pass. If each pass is a step, blocks made
 * between two passes (of a growing cache, for example) belong to the earlier one. */
size_t oom_batch_span(const struct oom *o, size_t step); /* index of the step's first span */
uint64_t oom_batch_begin(const struct oom *o, size_t step);
/* First event of the evaluation that ran out of memory, or that ended right before; 0 = none.
 * oom_passes.c */
uint64_t oom_evaluation(const struct oom *o);
/* Memory ran out in an evaluation, or the program has run no backward pass. */
bool oom_only_forward(const struct oom *o);
uint64_t oom_latest_backward(const struct oom *o); /* its first event, 0 = none */
/* Fills copies: blocks that autocast's casts made, with half the bytes of a weight. */
void oom_find_copies(struct oom *o);
void oom_find_listed(struct oom *o);
/* Inputs made before the first pass of their step: one batch, or the whole data. */
uint64_t oom_first_inputs(const struct oom *o);
/* Half the batch would halve the size of the block, which was made in that stage. */
bool oom_grows_with_batch(const struct oom *o, const struct block *b, enum block_stage stage);
/* Bytes of the tensors that hold the results of all passes of an evaluation, if the request after a
 * pass is as large as one of them; *owner: that tensor's. 0 = none. */
uint64_t oom_results(const struct oom *o, struct owner *owner);
/* An operator such as zeros or empty made the block, for results that come later. */
bool oom_is_room(const struct oom *o, const struct block *b);
/* The model was called with several pieces of one sample (windows of a scan, tiles of a picture):
 * tensors that were made outside of it are of a single one. */
bool oom_is_of_pieces(const struct oom *o);
/* Half the batch is half of most of this step: the batch has a known size above one, the request is
 * a multiple of it, and modules and backward made more than half. */
bool oom_is_of_samples(const struct oom *o);
uint64_t
oom_asked_for_batch(const struct oom *o); /* the request; 0 if it does not grow with the batch */
/* Made by a line of the outermost module, so most likely part of the model's output. */
bool oom_is_returned(const struct oom *o, const struct block *b);
void oom_find_calls(struct oom *o); /* fills calls, read_each */
/* Fills since, batch_from, begin, passes. */
void oom_find_since(struct oom *o);

/* The block belongs to a pass, and a graph holds it. */
static inline bool oom_is_in_graph(const struct block *b)
{
	return b->state & LIFE_SAVED && category_in(b->category, OF_ONE_PASS);
}

static inline bool oom_has_graphs(const struct oom *o)
{
	return ANY_OF(b, o->shot.moment.blocks, o->shot.moment.count, b->state & LIFE_SAVED);
}

/* The latest work that used a block of `shot`, 0 = none; and the event of a work. */
static inline uint32_t oom_last_use(const struct oom *o, const struct block *b)
{
	return o->around[b - o->shot.moment.blocks].before;
}

static inline uint64_t oom_work_seq(const struct oom *o, uint32_t work)
{
	return uses_work(&o->timeline->model.uses, work)->seq;
}

/* Number of lives that began before the refusal; of n lives, the first of the latest. */
static inline uint32_t oom_lives(const struct oom *o)
{
	return lives_born_by(&o->timeline->model.lives, o->refusal.event.seq);
}

static inline uint32_t oom_latest(uint32_t n)
{
	return n > OOM_LATEST ? n - OOM_LATEST : 0;
}

static inline void oom_hold(struct oom_held *h, const struct block *b)
{
	h->bytes += b->size;
	if (b->size > h->largest.size)
		h->largest = *b;
}

enum oom_cause oom_cause(const struct oom *o, char text[OOM_TEXT]);
/* Bytes that the program's own collectives gather, with the request; 0 = none. */
uint64_t oom_gathered_by_hand(const struct oom *o);
const char *oom_cause_name(enum oom_cause cause);

/* Returns their number, the most useful first. */
size_t oom_remedies(struct oom *o, enum oom_cause cause, struct oom_remedy out[OOM_REMEDIES]);

/* oom_workspace.c */
/* "for a tensor of" or "for a workspace of" */
const char *oom_request_words(const struct oom *o);
/* Bytes that the proposed setting leaves of a workspace of cuBLAS; 0 = there is none. */
uint64_t oom_cublas_left(const struct oom *o);
/* Bytes saved of that block then; 0 if it is no workspace of cuBLAS. */
uint64_t oom_spared(const struct oom *o, const struct block *b, uint64_t left);
uint64_t oom_spared_all(const struct oom *o); /* of all; 0 if too few */
/* Appends PyTorch's message, if cuDNN made the request. */
void oom_say_message(const struct oom *o, char text[OOM_TEXT]);
/* Whether the recording ends in a convolution for which cuDNN seems to have had no plan. */
bool oom_no_plan(struct timeline *t, char text[OOM_TEXT]);

/* Replays settings of the allocator; the second appends which ones do not help. oom_settings.c */
void oom_settings(struct oom_settings *all, const struct oom *o);
void oom_settings_say(const struct oom_settings *all, char text[OOM_TEXT]);

/* Bytes by which the request did not fit. */
uint64_t oom_missing(const struct oom *o);

/* The answer of `oom`. */
struct oom_answer {
	struct oom *oom;
	enum oom_cause cause;
	char why[OOM_TEXT];
	struct oom_remedy remedies[OOM_REMEDIES];
	size_t count;
	char note[VARIABLE_FORM], module[512], shape[VARIABLE_SHAPE]; /* texts of the row at hand */
	char line[LARGE_LINE_ALL];
	size_t nth; /* refusals of the recording up to this one */
};

void oom_answer(struct oom_answer *a, struct oom *o);
/* The document without its parts on ranks and values. Valid as long as *a and its oom. */
struct row_oom oom_document(struct oom_answer *a);
void oom_text(const struct oom_answer *a, const struct row_oom *row, long top, struct emit *out);
