/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A refusal of memory: what was asked for, what was there, what held the rest, why it did not fit
 * and what would have made it fit. Facts come from the recording alone; what is concluded from them
 * stands in two tables, oom_causes.def and oom_remedies.def.
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

/* Blocks that stand out: the largest of what the passes made, and those like it. */
struct oom_spike {
	uint64_t largest, next; /* bytes of one block; next: the largest of the others */
	uint64_t bytes, least;	/* of all that stand out, with what was asked for, and of one */
	uint64_t unsaved;	/* of these: that no graph ever takes; not counted for many */
	size_t count, others;
	struct owner owner;
};

#define OOM_LATEST     (1u << 16) /* lives: what a line does shows in so many */
#define OOM_SPIKE_MOST 8	  /* blocks: more do not stand out */

#define OOM_SETTINGS  8
#define OOM_VARIABLES 64
#define OOM_TEXT      600

/* Settings of the allocator, replayed until the refusal. */
struct oom_settings {
	struct oom_setting {
		const char *conf;
		struct replay_refusal outcome;
	} tried[OOM_SETTINGS]; /* of which it is known what they come to */
	size_t count;
	const struct oom_setting *fits; /* the first that does, NULL = none */
	struct replay_refusal own;	/* with the recording's own one, */
	char conf[160];			/* which this is */
	bool less_workspace;		/* with it, and with less for cuBLAS: the request fits */
	char why[SETTINGS_WHY];		/* none was tried, though one may help; "" = none may */
};

struct oom {
	struct refusal refusal;
	struct timeline *timeline; /* of its device */
	struct timeline own;	   /* where oom_open has read it */
	struct snapshot shot;	   /* after it */
	struct leaks leaks;
	struct unclassed unclassed;
	struct used_up unused; /* blocks that nothing used for long, but for what grows */

	struct use_around *around;     /* of each of its blocks */
	uint32_t works;		       /* the latest work before it */
	uint64_t dropped;	       /* events that the program could not keep */
	bool state_only;	       /* a snapshot without a history: refusals are not in it */
	uint64_t asked;		       /* what the framework wanted from the device */
	uint64_t block;		       /* what the program wanted of the framework */
	struct block wanted;	       /* as the block that it would have become, */
	uint32_t wanted_signs;	       /* its stack's, */
	enum block_stage wanted_stage; /* and what its thread was doing */
	struct owner wanted_owner;
	struct instant instant;
	enum phase phase;

	struct room room; /* in the cache and on the device */
	struct pool_sums pools;
	uint64_t allocated;
	uint64_t libraries; /* memory of this program that the framework did not ask for */
	uint64_t context;   /* in use on the device by no known call: own context, and others */
	uint64_t others;    /* of that, more than a context takes */
	uint64_t capacity;  /* reserved and free: what the framework could have had */

	uint64_t lasting; /* parameters, gradients, optimizer state, buffers, its temporaries */
	uint64_t batch[CATEGORIES]; /* inputs, activations, temporaries that grow with the batch */
	uint64_t passing;	    /* their sum */
	struct map copies;	    /* events: blocks that autocast made of weights */
	uint64_t computed;    /* gradients that the script made of others, no part of the model */
	uint64_t trainable;   /* parameters that a leaf was seen in */
	uint64_t state;	      /* made in an optimizer's step: no copy that the program keeps */
	uint64_t projected;   /* what the optimizer will keep, by its kind; 0 = not known */
	uint64_t unsharded;   /* gathered parameters, and buffers of collectives */
	uint64_t grown;	      /* kept from earlier steps at lines that grow */
	uint64_t grown_graph; /* of that: graphs and outputs of modules, */
	uint64_t grown_saved; /* and what graphs hold, where that is known */
	struct oom_held {
		uint64_t bytes, from;
		struct block largest;
	} attempts;	   /* that ran out of memory, see oom_passes.c */
	struct block root; /* the last tensor of an earlier step's forward pass that is kept */
	struct oom_left {
		struct map blocks; /* events */
		uint64_t bytes;
		struct oom_held call; /* what the model returned before, not used in this call */
		bool gathered;	      /* by an evaluation, which may read it all at its end */
	} left;			      /* by earlier passes, without a use since: see oom_left.c */
	struct holders holders;
	struct oom_spike spike;

	uint64_t current;    /* of what passes: made in this step, */
	uint64_t begin;	     /* which begins with that event */
	uint64_t since;	     /* seq: what is older was made in earlier steps, */
	uint64_t batch_from; /* inputs that were made after it may be this step's, too */
	struct {
		size_t steps; /* before this one, that are compared; 0: it is not larger */
		uint64_t inputs, before; /* bytes of this step's; the most in one of those steps */
		uint64_t peak;		 /* the highest of those steps */
	} longer;
	struct {
		uint64_t bytes;	   /* with the request, made under vmap; 0: it is not */
		struct owner call; /* of torch.func, by the script; no file: not known */
		bool saved;	   /* a graph holds some of it */
	} rows;
	bool by_call;	/* or in earlier calls of the model: no backward pass has come yet */
	size_t passes;	/* forward passes of this step whose results are held */
	uint64_t calls; /* bytes in graphs of passes before the latest, if no backward pass came */
	bool read_each; /* something of nearly each pass was copied to the host */
	bool served;	/* passes without a graph used what those with one made */
	uint64_t evaluation; /* it ran out in or right behind one, which begins there; 0 = none */
	uint64_t of_pass;    /* bytes that its latest forward pass made and that are held */
	size_t at_step;	     /* the item of `steps` that it is in, 0 = before the first */
	/* An earlier one, if its end and those after it may be boundaries within one step that is
	 * not over: what was made since it began may still be needed. */
	size_t since_step;
	size_t compared_step; /* an earlier one that ended; 0 = none */
	uint64_t compared[CATEGORIES];
	unsigned world;	 /* ranks, 1 if not known */
	bool sharded;	 /* gradients of shards were reduced at some time */
	bool collective; /* what was asked for is a collective's */
	struct variable_at variables[OOM_VARIABLES]; /* the largest first */
	size_t variable_count, variables_shown;	     /* those that are large */
	uint64_t samples;			     /* see variables_first_size */
	struct oom_settings settings;		     /* by oom_answer */
	struct oom_engine {
		const char *phase;  /* NULL: no serving engine */
		struct owner owner; /* the function that says so, or the request's */
		uint64_t cache;	    /* bytes of its KV cache, with what was asked for it, */
		size_t pieces;	    /* and its blocks */
		bool named;	    /* functions say that it is one */
		bool wanted;	    /* for it memory ran out */
		bool samples;	    /* it computed logits or chose tokens from them */
	} engine;
};

enum oom_cause {
#define CAUSE(name) CAUSE_##name,
#include "oom_causes.def"
	OOM_CAUSES
};

void oom_engine(struct oom *o); /* oom_engine.c */
/* A text in the making, and parts of one, each in a buffer that lasts as long as its block. */
#define oom_say(text, ...) text_put((text), OOM_TEXT, __VA_ARGS__)
/* Growth is told from pass to pass, or from step to step. */
#define BY_LEFT(o)	((o)->left.bytes && (o)->left.bytes >= (o)->grown / 2)
#define BY_PASS(o)	((o)->by_call || BY_LEFT(o))
#define PASS_OR_STEP(o) (BY_PASS(o) ? "pass" : "step")
#define WHO(o)		owner_words(o, (char[OWNER_WORDS]){ 0 }, OWNER_WORDS, 0)

struct oom_remedy {
	const char *name;
	struct claim
		claim; /* docs/conclusions.md: of the times that the rest of a run decided it */
	uint64_t saves;
	bool enough; /* as much as was missing, and the request again where it is freed in pieces */
	bool answers; /* the cause */
	char what[OOM_TEXT], how[OOM_TEXT];
};

#define OOM_REMEDIES 16

/* It says nothing of a line of the program. oom_remedies.c */
bool oom_remedy_is_general(const char *name);

/* oom_requests.c */
typedef uint64_t remedy_fn(const struct oom *o, char *what, char *how);
#define REMEDY(name, ...) remedy_fn remedy_##name;
#define FOUND(...)
#include "oom_remedies.def"
#undef REMEDY
#undef FOUND
/* The library decides, and whether it can do without is not known. */
bool oom_is_up_to_the_library(const struct oom *o);

/* 0, or a sentence was said and the exit code. o->refusal.nth 0: there is no such refusal. */
int oom_open(struct oom *o, struct recording *r, uint64_t nth);
/* The same where its device's timeline is at hand; *o is empty. */
void oom_look(struct oom *o, struct timeline *t, const struct refusal *refusal);
void oom_close(struct oom *o);
void oom_holders(struct oom *o); /* oom_holders.c: who holds what, what stands out */
const struct holder *oom_grown_most(const struct oom *o); /* NULL = nothing is left */
void oom_attempts(struct oom *o);			  /* oom_passes.c */
uint32_t oom_pass_at(const struct oom *o, uint64_t seq);  /* the number of the latest pass */
void oom_find_longer(struct oom *o);			  /* oom_longer.c */
void oom_find_rows(struct oom *o);			  /* oom_rows.c */
void oom_left(struct oom *o);				  /* oom_left.c */
/* oom_steps.c: see since_step. */
size_t oom_since_step(const struct oom *o);
/* Calls of a model before any backward pass, which no graph holds: memory is compared by call. */
bool oom_by_call(const struct oom *o);
/* The call or step that earlier ones are told from. */
static inline size_t oom_number(const struct oom *o)
{
	return o->by_call ? o->at_step : o->since_step;
}
/* It begins with its batch, which may be made before zero_grad clears the gradients of the step
 * before, or, without an optimizer, before the first pass. Where each pass is a step, what is made
 * between two passes (a cache that grows, say) belongs to the first of them. */
size_t oom_batch_span(const struct oom *o, size_t step); /* the index of its first span */
uint64_t oom_batch_begin(const struct oom *o, size_t step);
/* oom_passes.c: the first event of the evaluation that memory ran out in, or right behind; 0 = in
 * none. */
uint64_t oom_evaluation(const struct oom *o);
/* An evaluation, or a program of which no backward pass was seen. */
bool oom_only_forward(const struct oom *o);
uint64_t oom_latest_backward(const struct oom *o); /* its first event, 0 = none */
/* Copies of weights: of half the bytes of one, made by autocast's casts. */
void oom_find_copies(struct oom *o);
/* A block of that class, made in that stage: half the batch would take half of it. */
/* Bytes of inputs from before the first pass, in its step: of one batch, or of the whole data. */
uint64_t oom_first_inputs(const struct oom *o);
bool oom_grows_with_batch(const struct oom *o, const struct block *b, enum block_stage stage);
/* Tensors that the evaluation made for the results of all its passes, if something as large as one
 * of them, its owner, was asked for behind a pass; 0 = none. */
uint64_t oom_results(const struct oom *o, struct owner *owner);
/* Nobody computed it: an operator made room for what is yet to come. */
bool oom_is_room(const struct oom *o, const struct block *b);
/* How many samples the batch has, more than one, and that the request is for them. */
bool oom_knows_samples(const struct oom *o);
uint64_t oom_asked_for_batch(const struct oom *o); /* what was asked for, 0 if it does not */
void oom_find_calls(struct oom *o);		   /* calls, read_each */
/* since, batch_from, begin, passes */
void oom_find_since(struct oom *o);

static inline bool oom_same_function(const struct owner *a, const struct owner *b)
{
	return a->file && a->file[0] && !strcmp(a->function, b->function) &&
	       !strcmp(a->file, b->file);
}

enum oom_cause oom_cause(const struct oom *o, char text[OOM_TEXT]);
/* What the program gathers by its own calls, with what was asked for; 0 = nothing. */
uint64_t oom_gathered_by_hand(const struct oom *o);
const char *oom_cause_name(enum oom_cause cause);

/* The most useful first; returns how many. */
size_t oom_remedies(const struct oom *o, enum oom_cause cause, struct oom_remedy out[OOM_REMEDIES]);

#define OOM_CUBLAS_LEFT (8ull << 20) /* of a workspace of cuBLAS, with :4096:2 */
/* Bytes less of a block; 0: it is no such workspace. */
uint64_t oom_spared(const struct oom *o, const struct block *b);
uint64_t oom_spared_all(const struct oom *o); /* 0: too few */

/* oom_settings.c: what replays say, and the sentences on what does not help, behind a text. */
void oom_settings(struct oom_settings *all, const struct oom *o);
void oom_settings_say(const struct oom_settings *all, char text[OOM_TEXT]);

/* How much more was needed. */
uint64_t oom_missing(const struct oom *o);

/* All that is said of it. */
struct oom_answer {
	struct oom *oom;
	enum oom_cause cause;
	char why[OOM_TEXT];
	struct oom_remedy remedies[OOM_REMEDIES];
	size_t count;
	char note[VARIABLE_FORM], module[512],
		shape[VARIABLE_SHAPE]; /* of the row that is being written */
	char line[LARGE_LINE_ALL];
	size_t nth; /* refusals so far */
};

void oom_answer(struct oom_answer *a, struct oom *o);
/* Without what it says of ranks and of values; lives as long as a and its oom. */
struct row_oom oom_document(struct oom_answer *a);
void oom_text(const struct oom_answer *a, const struct row_oom *row, long top, struct emit *out);
