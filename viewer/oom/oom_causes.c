/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test for each cause: whether the facts show it; the sentence that says by which stands in
 * oom_causes.def. Shares are of the memory that the framework could have had.
 */

#include "../base/arithmetic.h"
#include "oom.h"

/* Is part at least one `of`th of all? */
static bool is_share(uint64_t part, uint64_t all, unsigned of)
{
	return part && part >= all / of;
}

/* No CUDA call was refused, though the device had room. */
static bool is_memory_limit(const struct oom *o)
{
	return o->refusal.event.kind == GMT_BLOCK_OOM && !o->refusal.fail.kind && o->room.sampled &&
	       o->room.free >= o->asked && is_share(o->room.free, o->capacity, 20);
}

static bool is_other_process(const struct oom *o)
{
	return is_share(o->others, o->room.total, 10) && o->grown <= o->others &&
	       o->room.free + o->others >= o->asked;
}

/* Much of all that is held; or, where the model or a KV cache of fixed size holds most and lines
 * grow with each step, much of the rest, so that without it the request would have fit. */
static bool has_grown(const struct oom *o)
{
	uint64_t fixed = o->lasting + o->engine.cache;
	uint64_t rest = o->allocated > fixed ? o->allocated - fixed : 0;

	return o->grown >= o->room.cached + o->room.apart &&
	       (is_share(o->grown, o->allocated, 4) ||
		(is_share(o->grown, rest, 4) && o->grown >= o->asked && !o->by_pass &&
		 o->leaks.bytes_per_step));
}

static bool is_unused(const struct oom *o)
{
	const struct unused *u = &o->unused;

	return is_share(u->bytes - u->left, o->allocated, 4) && u->bytes >= o->grown;
}

static bool is_refused_attempts(const struct oom *o)
{
	return is_share(o->attempts.bytes, o->allocated, 4);
}

#define CALLER 160

/* A line of a module does not say which loop keeps what it made: the line that called the model, or
 * that made the last tensor of the pass, does. */
static const char *caller(char buf[CALLER], const struct oom *o, const struct holder *most)
{
	struct owners *owners = (struct owners *)&o->timeline->owners;
	struct owner last = { .file = "" };

	if (o->root.seq)
		last = owners_caller(owners, o->root.stack);
	if (last.file[0])
		snprintf(buf, CALLER, ", in a model called at %s", WHO(&last));
	else if (o->root.seq && o->grown_graph)
		last = owners_find(owners, &o->root);
	if (!buf[0] && last.file[0] && !(most && owners_same(&last, &most->owner)))
		snprintf(buf, CALLER, ". The last tensor of each %s was made by %s",
			 PASS_OR_STEP(o), WHO(&last));
	return buf;
}

static bool is_retained_graph(const struct oom *o)
{
	return has_grown(o) && o->grown_graph >= o->grown / 2;
}

static bool is_growing(const struct oom *o)
{
	return has_grown(o);
}

/* The unused memory of other pools would have been enough. */
static bool is_in_pools(const struct oom *o)
{
	return o->pools.count && o->room.apart >= o->asked &&
	       is_share(o->room.apart, o->room.reserved, 6);
}

/* All that was free would have been enough, but not in one piece. */
static bool is_fragmentation(const struct oom *o)
{
	uint64_t needed = arithmetic_beyond(o->projected, o->shot.bytes[CATEGORY_optimizer_state]);

	return is_in_pools(o) ||
	       (o->room.cached + o->room.free >= arithmetic_most(needed, o->asked) &&
		o->room.hole < o->block && is_share(o->room.cached, o->room.reserved, 6));
}

static bool is_kv_cache(const struct oom *o)
{
	return o->engine.phase && is_share(o->engine.cache, o->capacity, 4);
}

/* Pieces as large as a parameter, of one line, one for each rank. */
static uint64_t piece_bytes(const struct oom *o, uint64_t size)
{
	struct owners *owners = (struct owners *)&o->timeline->owners;
	uint64_t bytes = 0;

	FOR_EACH (const struct block, b, o->shot.moment.blocks, o->shot.moment.count) {
		struct owner owner;

		if (b->size != size || b->category == CATEGORY_parameters)
			continue;
		owner = owners_find(owners, b);
		if (owners_same(&owner, &o->wanted_owner))
			bytes += b->size;
	}
	return bytes;
}

/* The whole is as large as a parameter on all ranks, or piece after piece is as large as one. A
 * backward pass makes the whole gradient of a parameter that forward gathered. */
uint64_t oom_gathered_by_hand(const struct oom *o)
{
	uint64_t pieces;

	if (o->world == 1 || o->phase == PHASE_OPTIMIZER || o->phase == PHASE_BACKWARD)
		return 0;
	pieces = piece_bytes(o, o->block);
	FOR_EACH (const struct block, b, o->shot.moment.blocks, o->shot.moment.count)
		if (b->category == CATEGORY_parameters &&
		    ((b->size == o->block && pieces) ||
		     (b->size * o->world >= o->block && (b->size - 512) * o->world < o->block)))
			return pieces + o->block;
	return 0;
}

static bool is_unsharded(const struct oom *o)
{
	uint64_t all = o->unsharded + (o->collective ? o->block : oom_gathered_by_hand(o));

	return is_share(all, o->capacity, 6) && all >= o->passing / 2;
}

static bool asks_for_workspace(const struct oom *o)
{
	return o->wanted.category == CATEGORY_workspace ||
	       (o->refusal.event.kind == GMT_MEM_FAIL && o->timeline->framework);
}

/* A network of convolutions whose batch is too large most often ends at the scratch memory of one
 * of them; that is the cause only where it is large beside what the batch made. */
static bool is_workspace(const struct oom *o)
{
	uint64_t held = o->shot.bytes[CATEGORY_workspace] + o->libraries;

	if (!asks_for_workspace(o))
		return is_share(held, o->capacity + o->libraries, 3);
	return is_share(held + o->block, o->capacity + o->libraries, 10) &&
	       o->block >= o->passing / 2;
}

struct term {
	const char *name;
	uint64_t bytes;
};

/* ": a 1 KiB, b 2 KiB and c 3 KiB", without those of 0 bytes. Returns how many. */
static unsigned add_terms(char *text, const struct term *terms, unsigned count)
{
	unsigned left = 0, shown = 0;

	for (unsigned i = 0; i < count; i++)
		left += terms[i].bytes > 0;
	for (unsigned i = 0; i < count && shown < left; i++)
		if (terms[i].bytes) {
			const char *join = !shown ? ":" : shown + 1 == left ? " and" : ",";

			text_add(text, OOM_TEXT, "%s %s %s", join, terms[i].name,
				 B(terms[i].bytes));
			shown++;
		}
	return left;
}

#define TERMS(text, ...)                                      \
	add_terms(text, (const struct term[]){ __VA_ARGS__ }, \
		  sizeof((const struct term[]){ __VA_ARGS__ }) / sizeof(struct term))

/* What of it does not fit; NULL: it does. */
static const char *model_words(const struct oom *o)
{
	uint64_t all = o->allocated + o->block;
	bool setup = o->wanted_signs & STACK_PARAM ||
		     (o->wanted.category == CATEGORY_parameters && !o->shot.model->spans.forwards);

	if (setup && is_share(o->lasting + o->block, all, 2))
		return "The model does not fit (memory ran out while it was created or moved to "
		       "the device)";
	if (o->phase == PHASE_OPTIMIZER && o->lasting + o->block >= all / 10 * 6)
		return o->projected ? "The optimizer's state does not fit (its first step makes it)"
				    : "The optimizer's step does not fit";
	return o->lasting >= all / 4 * 3 ? "The model alone fills the device" : NULL;
}

static bool is_model_too_large(const struct oom *o)
{
	return model_words(o);
}

static void say_model(const struct oom *o, char *text)
{
	const uint64_t *b = o->shot.bytes;
	uint64_t weights = b[CATEGORY_parameters] + b[CATEGORY_buffers];
	uint64_t gradients = b[CATEGORY_gradients] - o->computed;
	uint64_t kept = weights + gradients + b[CATEGORY_optimizer_state];
	unsigned shown;

	oom_say(text, "%s. %s", model_words(o), o->lasting ? "Before any batch" : "");
	shown = TERMS(text, { "parameters", weights }, { "gradients", gradients },
		      { "optimizer state", b[CATEGORY_optimizer_state] },
		      { "temporaries of the optimizer's step", o->lasting - kept });
	if (shown > 1)
		text_add(text, OOM_TEXT, ", in all %s", B(o->lasting));
	text_add(text, OOM_TEXT,
		 shown ? " of the %s that PyTorch could use." : "PyTorch could use %s.",
		 B(o->capacity));
}

static bool is_activation_spike(const struct oom *o)
{
	const struct oom_spike *p = &o->spike;
	bool alone = o->block >= o->capacity / 2 && o->passing < o->capacity / 4 &&
		     p->largest == o->block;
	unsigned times = p->others >= 3 ? 5 : 20;
	bool stands_out = p->others && p->count <= 8 && p->largest >= times * p->next;

	return p->count && is_share(p->bytes, o->capacity, 4) && (alone || stands_out);
}

/* Inputs that may be of more than this batch. */
static uint64_t other_inputs(const struct oom *o)
{
	return arithmetic_least(oom_first_inputs(o), o->batch[CATEGORY_inputs]);
}

static bool is_batch_too_large(const struct oom *o)
{
	return is_share(o->passing - other_inputs(o) + oom_asked_for_batch(o),
			o->allocated + o->block, 3);
}

static void say_batch(const struct oom *o, char *text)
{
	const uint64_t *b = o->batch;
	uint64_t first = other_inputs(o), asked = oom_asked_for_batch(o);

	oom_say(text, "The batch is too large. With it grow");
	TERMS(text, { "inputs", b[CATEGORY_inputs] - first },
	      { "activations", b[CATEGORY_activations] },
	      { "temporaries", b[CATEGORY_forward_temporaries] + b[CATEGORY_backward_temporaries] },
	      { "KV cache", b[CATEGORY_kv_cache] },
	      { o->wanted.category == CATEGORY_inputs ? "the new batch" : "the request", asked });
	text_add(text, OOM_TEXT,
		 ", %s in total. PyTorch could use %s, of which the model takes %s.",
		 B(o->passing - first + asked), B(o->capacity), B(o->lasting));
}

/* A piece of the cache that is large enough and is not used is kept for others. Small blocks have
 * segments of their own, so theirs may be too. */
static bool is_kept_apart(const struct oom *o)
{
	return o->timeline->framework && o->block >= 2u << 20 && o->room.hole >= o->block;
}

/* Then it would not fit on an empty one. */
static bool is_larger_than_device(const struct oom *o)
{
	return o->room.total && o->asked > o->room.total;
}

static bool is_unknown(UNUSED const struct oom *o)
{
	return true;
}

static const char *maker(char buf[OWNER_WORDS], const struct oom *o, const struct block *b)
{
	struct owner owner = owners_find((struct owners *)&o->timeline->owners, b);

	return owner_words(&owner, buf, OWNER_WORDS, 0);
}

/* The sentences of oom_causes.def; a graph that is kept is said to grow. */
static void say_cause(const struct oom *o, enum oom_cause cause, char text[OOM_TEXT])
{
	enum oom_cause as = cause == CAUSE_retained_graph ? CAUSE_growing : cause;
	const struct unused *u = &o->unused;
	const struct holder *most = oom_grown_most(o);
	const struct pool_sum *pool = o->pools.items;
	const struct oom_spike *p = &o->spike;
	const char *one = PASS_OR_STEP(o);
	uint64_t workspaces = o->shot.bytes[CATEGORY_workspace] + o->libraries;
	uint64_t by_hand = oom_gathered_by_hand(o);
	bool whole = o->collective || !by_hand;

	text[0] = 0;
	if (cause == CAUSE_model_too_large)
		say_model(o, text);
	if (cause == CAUSE_batch_too_large)
		say_batch(o, text);
#define SAY(cause_, when, ...)              \
	if (as == CAUSE_##cause_ && (when)) \
		text_add(text, OOM_TEXT, __VA_ARGS__);
#include "oom_causes.def"
}

static const struct {
	const char *name;
	bool (*test)(const struct oom *o);
} causes[OOM_CAUSES] = {
#define CAUSE(name) { #name, is_##name },
#include "oom_causes.def"
};

enum oom_cause oom_cause(const struct oom *o, char text[OOM_TEXT])
{
	unsigned c = 0;

	while (!causes[c].test(o))
		c++;
	say_cause(o, c, text);
	if (!is_larger_than_device(o))
		return c;
	if (c == CAUSE_unknown) /* whose text says it */
		return CAUSE_activation_spike;
	text_add(text, OOM_TEXT, " The request alone is larger than the device (%s).",
		 B(o->room.total));
	return c;
}

const char *oom_cause_name(enum oom_cause cause)
{
	return causes[cause].name;
}
