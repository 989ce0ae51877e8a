/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One test for each cause. A test that succeeds writes the sentence that explains it. Shares are
 * relative to the memory that the framework could have had.
 */

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "oom.h"
#include "oom_terms.h"

#include <ctype.h>

/* Whether part is at least 1/of of all. */
static bool is_share(uint64_t part, uint64_t all, unsigned of)
{
	return part && part >= all / of;
}

/* No CUDA call was refused, though the device had room. */
static bool is_memory_limit(const struct oom *o, char *text)
{
	if (o->refusal.event.kind != GMT_BLOCK_OOM || o->refusal.fail.kind || !o->room.sampled)
		return false;
	if (o->room.free < o->asked || !is_share(o->room.free, o->capacity, 20))
		return false;
	return oom_say(
		text,
		"The program set a memory limit: PyTorch did not allocate %s although the device "
		"had %s free. It had reserved %s, so the limit is between that and %s "
		"(torch.cuda.set_per_process_memory_fraction).",
		B(o->asked), B(o->room.free), B(o->room.reserved), B(o->room.reserved + o->asked));
}

static bool is_other_process(const struct oom *o, char *text)
{
	if (!is_share(o->others, o->room.total, 10) || o->grown > o->others)
		return false;
	if (o->room.free + o->others < o->asked)
		return false;
	return oom_say(
		text,
		"Other processes use the device: of its %s only %s were free, and this program "
		"held %s. At least %s belong to other processes. Without them, %s would have "
		"fit.",
		B(o->room.total), B(o->room.free), B(o->room.reserved + o->libraries), B(o->others),
		B(o->asked));
}

/* Growth is a quarter of all memory in use. If the model or a KV cache of fixed size takes most,
 * growth is a quarter of the rest, goes on with each step, and without it the request would have
 * fit. */
static bool has_grown(const struct oom *o)
{
	uint64_t fixed = o->lasting + o->engine.cache;
	uint64_t rest = o->allocated > fixed ? o->allocated - fixed : 0;

	return o->grown >= o->room.cached + o->room.apart &&
	       (is_share(o->grown, o->allocated, 4) ||
		(is_share(o->grown, rest, 4) && o->grown >= o->asked && o->leaks.bytes_per_step));
}

#define LAST_USE(o, h)                                                                          \
	used_when((o)->timeline, (h)->last_use, (o)->refusal.event.ns, (char[USED_WORDS]){ 0 }, \
		  USED_WORDS)

/* The request would have fit without the blocks that were unused for long. */
static bool is_held_unused(const struct oom *o, char *text)
{
	const struct used_up *u = &o->unused;
	const struct holder *most = u->holders.items;
	char words[OOM_TEXT];

	if (!is_share(u->bytes, o->allocated, 10) || u->bytes < oom_missing(o) ||
	    u->bytes < o->grown || u->bytes < o->attempts.bytes)
		return false;
	return oom_say(
		text,
		"%s of the %s in use %s. Most of it was allocated by %s, the last use of any of "
		"that was %s. Without it the request would have fit.",
		B(u->bytes), B(o->allocated), used_up_words(u, words, sizeof(words)),
		WHO(&most->owner), LAST_USE(o, most));
}

static bool is_refused_attempts(const struct oom *o, char *text)
{
	const struct oom_held *x = &o->attempts;
	struct owner owner = owners_find(&o->timeline->owners, &x->largest);

	if (!is_share(x->bytes, o->allocated, 4))
		return false;
	return oom_say(text,
		       "Tensors of an earlier attempt that ran out of memory are still held: %s of "
		       "the %s in use, most of it allocated by %s. A caught exception keeps the "
		       "frames of its traceback, and with them their tensors.",
		       B(x->bytes), B(o->allocated), WHO(&owner));
}

/* A line inside a module does not show which loop keeps its results. The line that called the
 * model, or that made the last tensor of the pass, does. */
static void say_caller(const struct oom *o, const struct holder *most, char *text, size_t room)
{
	struct owners *owners = &o->timeline->owners;
	struct owner last = { .file = "" };

	if (o->root.seq)
		last = owners_caller(owners, o->root.stack);
	if (last.file[0])
		snprintf(text, room, ", in a model called at %s", WHO(&last));
	else if (o->root.seq && o->grown_graph)
		last = owners_find(owners, &o->root);
	if (!text[0] && last.file[0] && !(most && owners_same(&last, &most->owner)))
		snprintf(text, room, ". The last tensor of each %s was made by %s", PASS_OR_STEP(o),
			 WHO(&last));
}

static bool say_growth(const struct oom *o, char *text, const char *what)
{
	const struct holder *h = oom_grown_most(o);
	const char *one = PASS_OR_STEP(o), *of = BY_PASS(o) ? "forward passes" : "steps";
	char per[HUMAN_MAX + 60] = "", caller[160] = "";

	if (o->leaks.bytes_per_step)
		snprintf(per, sizeof(per), ", %s more %s %s%s", B(o->leaks.bytes_per_step),
			 o->leaks.each ? "with each" : "a", one,
			 o->leaks.each ? "" : " on average");
	say_caller(o, h, caller, sizeof(caller));
	if (BY_LEFT(o) && h)
		return oom_say(
			text,
			"%s from pass to pass: %s of the %s in use were made in or for earlier "
			"forward passes, and %s. Most of it was made by "
			"%s%s. Something outside of that line still refers to it: a variable, a "
			"list, an attribute, a closure, a hook or a reference cycle.",
			what, B(o->grown), B(o->allocated),
			o->grown_saved ? "are still held" : "nothing has used them since",
			WHO(&h->owner), caller);
	return oom_say(
		text,
		"%s from %s to %s: %s of the %s in use were allocated in earlier %s and are still "
		"held%s, most of it by %s%s.",
		what, one, one, B(o->grown), B(o->allocated), of, per,
		h ? WHO(&h->owner) : "unknown lines", caller);
}

/* A program that copies a result of each pass to the host is most likely evaluating. */
static bool is_read_each(const struct oom *o, char *text)
{
	const struct holder *h = FIRST_OF(x, o->holders.items, o->holders.count,
					  x->category == CATEGORY_activations);

	if (!(o->read_each || o->served) || !h || !is_share(o->calls, o->allocated, 2))
		return false;
	return oom_say(
		text,
		"Graphs are kept from pass to pass: %s of the %s in use are held by graphs "
		"of %zu earlier forward passes, most of it by %s. %s, and no backward pass came.",
		B(o->calls), B(o->allocated), o->passes - 1, WHO(&h->owner),
		o->served ? "Passes without a graph used their results, as a server's do"
			  : "The program copied results of each pass to the host, as an "
			    "evaluation does");
}

static bool is_retained_graph(const struct oom *o, char *text)
{
	if (is_read_each(o, text))
		return true;
	if (!has_grown(o) || o->grown_graph < o->grown / 2)
		return false;
	return say_growth(o, text,
			  BY_LEFT(o) && !o->grown_saved ? "Outputs are kept"
							: "Graphs or outputs are kept");
}

static bool is_growing(const struct oom *o, char *text)
{
	return has_grown(o) && say_growth(o, text, "Something grows");
}

/* The unused memory of private pools would have been enough. */
static bool is_in_pools(const struct oom *o, char *text)
{
	const struct pool_sum *most = o->pools.items;

	if (!o->pools.count || o->room.apart < o->asked ||
	    !is_share(o->room.apart, o->room.reserved, 6))
		return false;
	return oom_say(text,
		       "Memory is in private pools, where only their owners can use it: %s of "
		       "the %s that PyTorch had reserved, most of it in %s of %s (%s). %s",
		       B(o->room.apart), B(o->room.reserved), MANY(most->pools, "pool"),
		       pool_kinds[most->kind].text, WHO(&most->owner),
		       pool_kinds[most->kind].advice);
}

/* The free memory would have been enough in one piece. */
static bool is_fragmentation(const struct oom *o, char *text)
{
	uint64_t state = o->shot.bytes[CATEGORY_optimizer_state];
	uint64_t needed = o->projected > state ? o->projected - state : 0;

	if (is_in_pools(o, text))
		return true;
	needed = needed > o->asked ? needed : o->asked;
	if (o->room.cached + o->room.free < needed || o->room.hole >= o->block ||
	    !is_share(o->room.cached, o->room.reserved, 6))
		return false;
	return oom_say(
		text,
		"The free memory is fragmented: PyTorch had %s cached, %s together with the free "
		"memory of the device, but the largest hole was %s and %s were needed in one "
		"piece.",
		B(o->room.cached), B(o->room.cached + o->room.free), B(o->room.hole), B(o->block));
}

static bool is_kv_cache(const struct oom *o, char *text)
{
	const struct oom_engine *e = &o->engine;

	if (!e->phase || !is_share(e->cache, o->capacity, 4))
		return false;
	if (e->wanted)
		return oom_say(text,
			       "The KV cache does not fit: %s were requested for it, with %s that "
			       "it has, and %s were free.",
			       B(o->block), B(e->cache - o->block), B(o->room.free));
	return oom_say(text,
		       "The KV cache left too little for %s of the engine: it takes %s of the %s "
		       "that PyTorch could use, and %s were requested beside it.",
		       e->phase, B(e->cache), B(o->capacity), B(o->block));
}

static bool is_unsharded(const struct oom *o, char *text)
{
	uint64_t asked = o->collective ? o->block : oom_gathered_by_hand(o),
		 all = o->unsharded + asked;

	if (!is_share(all, o->capacity, 6) || all < o->passing / 2)
		return false;
	if (o->collective || !asked)
		return oom_say(
			text,
			"A sharded tensor was gathered whole: %s more were requested%s, and %s "
			"are held by tensors gathered before.",
			B(o->block), o->collective ? " for it" : "", B(o->unsharded));
	return oom_say(text,
		       "A sharded tensor was gathered whole: the request (%s) and %s from the "
		       "same line are as large as one parameter on each of %u ranks.",
		       B(o->block), B(asked - o->block), o->world);
}

/* If the batch of a convolutional network is too large, most often the workspace of a convolution
 * is the request that fails. The workspace is the cause only if it is large beside the results of
 * the batch. */
static bool is_workspace(const struct oom *o, char *text)
{
	bool asked = o->wanted.category == CATEGORY_workspace ||
		     (o->refusal.event.kind == GMT_MEM_FAIL && o->timeline->framework);
	uint64_t held = o->shot.bytes[CATEGORY_workspace] + o->libraries;
	uint64_t all = held + (asked ? o->block : 0);

	if (!is_share(all, o->capacity + o->libraries, asked ? 10 : 3) ||
	    (asked && o->block < o->passing / 2))
		return false;
	if (!asked)
		return oom_say(text, "Workspaces and libraries hold %s of the %s in use.", B(held),
			       B(o->allocated + o->libraries));
	return oom_say(text,
		       "The workspace of an operator does not fit: %s were requested for it, and "
		       "other workspaces and libraries hold %s.",
		       B(o->block), B(held));
}

/* Says `mixed` in place of `what` if the model would fit without the one that ran before. */
static bool say_model(const struct oom *o, char *text, const char *what, const char *mixed)
{
	bool before = is_share(o->earlier.bytes, o->capacity, 10);
	uint64_t rest = o->lasting - o->earlier.bytes;
	bool fits = before && rest + arithmetic_most(o->block, o->projected) < o->capacity / 4 * 3;
	uint64_t bytes[CATEGORIES];
	struct terms t = { .count = 0 };
	unsigned shown;

	memcpy(bytes, o->shot.bytes, sizeof(bytes));
	bytes[CATEGORY_gradients] -= o->computed;
	bytes[CATEGORY_parameters] -= o->loaded;
	terms_add_classes(&t, bytes, OF_THE_MODEL);
	terms_add(&t, "weights of a loaded checkpoint", o->loaded);
	terms_add(&t, "temporaries of the optimizer's step",
		  o->lasting - o->loaded - classes_sum(bytes, OF_THE_MODEL));
	oom_say(text, "%s. %s", fits ? mixed : what, o->lasting ? "Before any batch" : "");
	shown = terms_say(&t, text);
	if (shown > 1)
		text_add(text, OOM_TEXT, ", in all %s", B(o->lasting));
	text_add(text, OOM_TEXT,
		 shown ? " of the %s that PyTorch could use." : "PyTorch could use %s.",
		 B(o->capacity));
	if (before)
		text_add(text, OOM_TEXT,
			 " %s of these were used earlier, most of it last %s. The rest takes %s.",
			 B(o->earlier.bytes), LAST_USE(o, o->earlier.holders.items), B(rest));
	return true;
}

static bool is_model_too_large(const struct oom *o, char *text)
{
	uint64_t all = o->allocated + o->block;
	bool setup = o->wanted_signs & STACK_PARAM ||
		     (o->wanted.category == CATEGORY_parameters && !o->shot.model->spans.forwards);

	if (setup && is_share(o->lasting + o->block, all, 2))
		return say_model(o, text,
				 "The model does not fit (memory ran out while it was created or "
				 "moved to the device)",
				 "Memory ran out while a model was created or moved to the device, "
				 "and one that ran before is still there");
	if (o->phase == PHASE_OPTIMIZER && o->lasting + o->block >= all / 10 * 6)
		return say_model(o, text,
				 o->projected ? "The optimizer's state does not fit (its first "
						"step makes it)"
					      : "The optimizer's step does not fit",
				 "Memory ran out in the optimizer's step");
	return o->lasting >= all / 4 * 3 &&
	       say_model(o, text, "The model alone fills the device",
			 "More than the model in use fills the device");
}

static bool is_activation_spike(const struct oom *o, char *text)
{
	const struct oom_spike *p = &o->spike;
	bool alone = o->block >= o->capacity / 2 && o->passing < o->capacity / 4 &&
		     p->largest == o->block;
	unsigned times = p->others >= 3 ? 5 : 20;
	bool stands_out = p->others && p->count <= 8 && p->largest >= times * p->next;
	char like[64] = "", rest[96] = "";

	if (is_share(o->rows.bytes, o->capacity, 4))
		return oom_say(
			text,
			"One call of vmap (torch.func, or is_grads_batched) computes all rows "
			"at once: %s, with the request.",
			B(o->rows.bytes));
	if (!p->count || !is_share(p->bytes, o->capacity, 4) || !(alone || stands_out))
		return false;
	if (p->count > 1)
		snprintf(like, sizeof(like), ", %s with the %zu like it", B(p->bytes),
			 p->count - 1);
	if (p->others)
		snprintf(rest, sizeof(rest), ". The largest of %s beside it is %s",
			 MANY(p->others, "result"), B(p->next));
	return oom_say(text, "One operator's result stands out: %s for one tensor in %s%s%s.",
		       B(p->largest), WHO(&p->owner), like, rest);
}

static bool is_batch_too_large(const struct oom *o, char *text)
{
	bool input = o->wanted.category == CATEGORY_inputs;
	uint64_t b[CATEGORIES], first;
	uint64_t asked = oom_asked_for_batch(o), all;
	struct terms t = { .count = 0 };

	memcpy(b, o->batch, sizeof(b));
	first = arithmetic_least(oom_first_inputs(o), b[CATEGORY_inputs]);
	b[CATEGORY_inputs] -= first;
	all = o->passing - first + asked;

	if (!is_share(all, o->allocated + o->block, 3))
		return false;
	oom_say(text, "%s%s",
		o->calls && o->passes > 1 ? "Several forward passes wait for a backward pass, or "
					  : "",
		oom_is_of_samples(o) ? "the batch is too large. With it grow"
		: o->samples == 1
			? "the sample (the batch is one) is too large"
			: "one pass computes too much at once (the batch, or a sample, is too "
			  "large)");
	text[0] = (char)toupper((unsigned char)text[0]);
	terms_add_classes(&t, b, OF_ONE_PASS);
	terms_add_classes(&t, b, ~OF_ONE_PASS); /* a cache outlives its pass */
	terms_add(&t, input ? "the new batch" : "the request", asked);
	terms_say(&t, text);
	text_add(text, OOM_TEXT, ", %s in total. PyTorch could use %s", B(all), B(o->capacity));
	if (o->lasting || !o->unclassed.before)
		text_add(text, OOM_TEXT, ", of which the model takes %s", B(o->lasting));
	if (o->unclassed.before)
		text_add(text, OOM_TEXT, "%s %s were allocated before the recording began",
			 o->lasting ? ", and" : ", of which", B(o->unclassed.before));
	text_add(text, OOM_TEXT, ".");
	if (o->calls) /* no backward pass so far: a rollout or an evaluation */
		text_add(text, OOM_TEXT,
			 " %zu forward passes hold them, and there was no backward pass.",
			 o->passes);
	return true;
}

/* The request would not fit on an empty device. */
static bool is_larger_than_device(const struct oom *o)
{
	return o->room.total && o->asked > o->room.total;
}

static bool is_unknown(const struct oom *o, char *text)
{
	const struct holder *most = o->holders.items;
	uint64_t bytes = SUM_OF(h, o->holders.items, o->holders.count,
				owners_same(&h->owner, &most->owner) ? h->bytes : 0);
	char apart[HUMAN_MAX + 120] = "";

	if (is_larger_than_device(o))
		return oom_say(text,
			       "The request alone is larger than the device: %s were requested, "
			       "and the device has %s.",
			       B(o->asked), B(o->room.total));
	/* A large enough piece is free. Small blocks have segments of their own. */
	if (o->timeline->framework && o->block >= 2u << 20 && o->room.hole >= o->block)
		snprintf(apart, sizeof(apart),
			 " %s were cached in one piece, but not for this request, perhaps for "
			 "another stream.",
			 B(o->room.hole));
	if (most && most->owner.function[0] && bytes >= o->allocated / 5 * 4)
		return oom_say(
			text,
			"One line holds nearly all: %s of the %s in use (%s%s) were allocated by "
			"%s. %s were requested beside it, and %s were free.%s",
			B(bytes), B(o->allocated), bytes > most->bytes ? "mostly " : "",
			categories[most->category].words, WHO(&most->owner), B(o->asked),
			B(o->room.free), apart);
	return oom_say(text,
		       "The recording shows no single cause: %s were requested, %s were free, and "
		       "the table lists the rest.%s",
		       B(o->asked), B(o->room.free), apart);
}

static const struct {
	const char *name;
	bool (*test)(const struct oom *o, char *text);
} causes[OOM_CAUSES] = {
#define CAUSE(name) { #name, is_##name },
#include "oom_causes.def"
};

/* Names a list in the frames that holds a quarter of the memory in use. */
static void say_list(const struct oom *o, char *text)
{
	const struct variable_at *x =
		FIRST_OF(i, o->variables, o->variable_count, i->variable->head.tensors > 1);

	if (!x || !is_share(x->variable->head.bytes, o->allocated, 4))
		return;
	text_add(text, OOM_TEXT, " The variable %s of %s has %" PRIu32 " tensors, %s.",
		 x->variable->name.s, WHO(&x->owner), x->variable->head.tensors,
		 B(x->variable->head.bytes));
}

enum oom_cause oom_cause(const struct oom *o, char text[OOM_TEXT])
{
	unsigned c = 0;

	while (!causes[c].test(o, text))
		c++;
	say_list(o, text);
	unclassed_add(&o->unclassed, o->allocated, text, OOM_TEXT);
	if (!is_larger_than_device(o))
		return c;
	if (c == CAUSE_unknown) /* its text says so already */
		return CAUSE_activation_spike;
	text_add(text, OOM_TEXT, " The request alone is larger than the device (%s).",
		 B(o->room.total));
	return c;
}

const char *oom_cause_name(enum oom_cause cause)
{
	return causes[cause].name;
}
