/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each remedy as a function: the bytes it would have saved at that moment, 0 if it is none here,
 * with the words for what to do and how the figure is known. No figure is a guess: it is a sum of
 * blocks that lived, or a share of one that the words state.
 */
#include <stdlib.h>
#include <string.h>

#include "oom.h"

enum { PIECES = 8 };

typedef uint64_t remedy_fn(const struct oom *o, char *what, char *how);

static bool is_limited(const struct oom *o)
{
	return o->refusal.event.kind == GMT_BLOCK_OOM && !o->refusal.fail.kind;
}

static uint64_t raise_limit(const struct oom *o, char *what, char *how)
{
	if (!is_limited(o) || o->free < o->asked)
		return 0;
	oom_say(what,
		"Raise the program's own limit (set_per_process_memory_fraction) by %s or more",
		B(o->asked));
	oom_say(how, "%s were free on the device when PyTorch refused", B(o->free));
	return o->free;
}

static uint64_t free_device(const struct oom *o, char *what, char *how)
{
	if (!o->others)
		return 0;
	oom_say(what,
		"End the other programs on this device (nvidia-smi names them), or take another "
		"device");
	oom_say(how,
		"In use on the device %s; of that %s by this program, the rest less what a context "
		"takes",
		B(o->total - o->free), B(o->reserved + o->libraries));
	return o->others;
}

/* A kept graph hangs on the last tensor of its pass: that is what the program holds. */
static void say_let_go(const struct oom *o, const struct holder *h, char *what)
{
	const char *of = o->by_pass ? "passes" : "steps", *one = o->by_pass ? "pass" : "step";
	struct owner root = { 0 };

	if (o->root.seq)
		root = owners_find((struct owners *)&o->timeline->owners, &o->root);
	if (h->category == CATEGORY_kv_cache)
		oom_say(what,
			"Bound the cache of keys and values that %s makes longer: fewer tokens, a "
			"window, smaller elements, or the host",
			WHO(&h->owner));
	else if (o->root.seq && o->grown_graph > o->grown / 2 && !owners_same(&root, &h->owner))
		oom_say(what,
			"Free what %s made in earlier %s: its graph is kept alive, most likely "
			"by the tensor of %s, the last of each %s (loss.item() or .detach() in its "
			"place, or backward at once)",
			WHO(&h->owner), of, WHO(&root), one);
	else if (h->category == CATEGORY_activations)
		oom_say(what,
			"Free the graphs that %s was part of in earlier %s (.detach() on a state "
			"or a result that goes on to the next, loss.item() in place of a loss)",
			WHO(&h->owner), of);
	else
		oom_say(what,
			"Free what %s made in earlier %s (x.item() or x.detach().cpu() in its "
			"place, or del), or bound how much of it is kept",
			WHO(&h->owner), of);
}

static uint64_t let_go(const struct oom *o, char *what, char *how)
{
	const struct holder *h = oom_grown_most(o);

	if (!h)
		return 0;
	say_let_go(o, h, what);
	if (o->leaks.count && !o->by_pass)
		oom_say(how,
			"Blocks from before step %zu at lines that grew by %s with each step, from "
			"step %zu to step %zu",
			o->step, B(o->leaks.bytes_per_step), o->leaks.from_step, o->leaks.to_step);
	else
		oom_say(how, "Blocks that were made %s %zu and lived",
			o->by_pass ? "by passes before the latest, in step" : "before step",
			o->step);
	return o->leaks.count || o->grown > h->before ? o->grown : h->before;
}

static uint64_t expandable(const struct oom *o, char *what, char *how)
{
	if (o->shot.moment.mapped_count || !o->timeline->framework || o->cached < o->reserved / 20)
		return 0;
	oom_say(what,
		"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that cached memory in "
		"pieces can be used together");
	oom_say(how, "%s were reserved, %s of it allocated, the largest hole was %s",
		B(o->reserved), B(o->allocated), B(o->hole));
	return o->cached;
}

static uint64_t gather_less(const struct oom *o, char *what, char *how)
{
	bool by_hand = o->world > 1 && o->wanted_stage == STAGE_OUTSIDE;

	if (!o->unsharded && !o->collective && !by_hand)
		return 0;
	oom_say(what,
		"Gather less at a time: shard each layer by itself (fully_shard on the layers, "
		"then on the model) and reshard after forward");
	oom_say(how,
		"%s held by what is gathered, and half of the %s that were asked for, in units "
		"half as large",
		B(o->unsharded), B(o->block));
	return o->unsharded + o->block / 2;
}

static uint64_t less_workspace(const struct oom *o, char *what, char *how)
{
	uint64_t held = o->shot.bytes[CATEGORY_workspace];

	if (o->wanted_category == CATEGORY_workspace) {
		oom_say(what, "Let the library choose an algorithm without workspace: "
			      "torch.backends.cudnn.benchmark = False, or deterministic = True");
		oom_say(how, "The workspace is what was asked for");
		return o->block;
	}
	if (held < o->capacity / 20)
		return 0;
	oom_say(what, "Limit workspaces: CUBLAS_WORKSPACE_CONFIG=:4096:2, or fewer streams");
	oom_say(how, "Blocks that functions of the libraries' workspaces made");
	return held;
}

static uint64_t in_pieces(const struct oom *o, char *what, char *how)
{
	const struct oom_spike *p = &o->spike;

	if (!p->count || p->count > 8 || p->bytes < o->capacity / 4 ||
	    !o->shot.model->spans.forwards || p->largest < 5 * p->next)
		return 0;
	oom_say(what,
		"Compute it in %d pieces, one after the other (chunk the batch through %s, a "
		"fused or chunked loss)",
		PIECES, WHO(&p->owner));
	if (p->count == 1)
		oom_say(how, "One tensor of %s: all but one piece", B(p->bytes));
	else
		oom_say(how, "%zu tensors of %s to %s, %s together: all but one piece", p->count,
			B(p->largest / 2), B(p->largest), B(p->bytes));
	return p->bytes - p->bytes / PIECES;
}

static uint64_t no_grad(const struct oom *o, char *what, char *how)
{
	uint64_t bytes = o->shot.bytes[CATEGORY_activations], here;
	struct owner where;

	if ((o->timeline->model.spans.trains || o->step < 2) && !o->by_pass) {
		here = oom_never_walked(o, &where);
		if (!here)
			return 0;
		oom_say(what,
			"Run the passes of %s under torch.inference_mode() or torch.no_grad(): "
			"nothing "
			"is kept for backward then",
			WHO(&where));
		oom_say(how,
			"Saved for backward in passes from there, and no backward pass ever came "
			"after one of them");
		return here;
	}
	if (!bytes)
		return 0;
	oom_say(what, "Run it under torch.inference_mode() or torch.no_grad(): nothing is kept for "
		      "backward then");
	oom_say(how,
		o->by_pass ? "Saved for backward in %zu passes that no backward pass came after"
			   : "Saved for backward in %zu passes, and the program never ran backward",
		o->by_pass ? o->passes : o->step);
	return bytes;
}

static uint64_t fused_attention(const struct oom *o, char *what, char *how)
{
	struct owner where;
	uint64_t bytes = oom_scores(o, &where);

	if (!bytes)
		return 0;
	oom_say(what,
		"Compute the attention of %s with a fused kernel, which keeps no scores: "
		"F.scaled_dot_product_attention (in transformers attn_implementation=\"sdpa\" or "
		"\"flash_attention_2\")",
		where.function);
	oom_say(how,
		"Scores and their softmax, one value for each pair of positions, made there and "
		"alive%s",
		o->wanted.size >= o->spike.largest / 4 ? ", with what was asked for" : "");
	return bytes;
}

static bool has_frame(const struct oom *o, const char *word)
{
	struct stacks *s = (struct stacks *)&o->timeline->stacks;

	stacks_read_python(s, o->refusal.event.stack);
	for (size_t i = 0; i < s->count; i++)
		if (strstr(s->frames[i].function, word))
			return true;
	return false;
}

static uint64_t foreach_off(const struct oom *o, char *what, char *how)
{
	uint64_t largest = o->block, all = o->block;

	if (o->phase != PHASE_OPTIMIZER || !has_frame(o, "_multi_tensor"))
		return 0;
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		if (o->shot.classes[i] != CATEGORY_optimizer_temporaries)
			continue;
		all += o->shot.moment.blocks[i].size;
		if (o->shot.moment.blocks[i].size > largest)
			largest = o->shot.moment.blocks[i].size;
	}
	oom_say(what, "Make the optimizer with foreach=False (or fused=True): one parameter's "
		      "temporaries at a time");
	oom_say(how,
		"Temporaries of the optimizer's step, with the one that was asked for, less the "
		"largest");
	return all - largest;
}

static uint64_t state_elsewhere(const struct oom *o, char *what, char *how)
{
	uint64_t state = o->projected > o->state ? o->projected : o->state;

	if (!state)
		return 0;
	oom_say(what, "Keep the optimizer's state elsewhere (offload it to the host), or choose an "
		      "optimizer with less of it");
	oom_say(how,
		o->projected ? "Trainable parameters %s, and that optimizer keeps as much for them"
			     : "Blocks of the optimizer's state, beside %s of trainable parameters",
		B(o->trainable));
	return state;
}

static uint64_t shard(const struct oom *o, char *what, char *how)
{
	const uint64_t *b = o->shot.bytes;
	uint64_t all = b[CATEGORY_parameters] + b[CATEGORY_gradients] +
		       (o->projected ? o->projected : o->state);

	if (all < o->capacity / 3 || o->unsharded || o->collective)
		return 0;
	oom_say(what,
		"Shard the model over two devices (FSDP), or use parameters of half the bytes");
	oom_say(how, "Half of the parameters, gradients and optimizer state");
	return all / 2;
}

static uint64_t smaller_batch(const struct oom *o, char *what, char *how)
{
	bool asked = oom_is_passing(o->wanted_category) && o->phase != PHASE_OPTIMIZER;
	uint64_t old = 0, all;

	for (size_t i = 0; i < o->holders.count; i++)
		if (oom_is_passing(o->holders.items[i].category))
			old += o->holders.items[i].before;
	all = o->passing - old + (asked ? o->block : 0);
	if (o->phase == PHASE_OPTIMIZER || !o->shot.model->spans.forwards || all < o->capacity / 20)
		return 0;
	oom_say(what, "Take half the batch (and accumulate gradients over two)");
	oom_say(how,
		"Inputs, activations and temporaries of this step%s, %s, are in proportion to it: "
		"half of them",
		asked ? " with what was asked for" : "", B(all));
	return all / 2;
}

static uint64_t checkpoint(const struct oom *o, char *what, char *how)
{
	char name[64];
	size_t calls;
	uint64_t saves = oom_checkpoint(o, name, sizeof(name), &calls);

	if (!saves)
		return 0;
	oom_say(what,
		"Checkpoint %s (torch.utils.checkpoint): compute its inside again in backward",
		name);
	oom_say(how,
		"Activations made inside %zu calls of it, less the inside of one and the output of "
		"each",
		calls);
	return saves;
}

static uint64_t set_to_none(const struct oom *o, char *what, char *how)
{
	if ((o->phase != PHASE_FORWARD && o->phase != PHASE_EVALUATION) ||
	    !o->shot.bytes[CATEGORY_gradients])
		return 0;
	oom_say(what,
		"Free the gradients before the forward pass: zero_grad(set_to_none=True) (unless "
		"they are accumulated)");
	oom_say(how, "Gradients that were held while the forward pass ran");
	return o->shot.bytes[CATEGORY_gradients];
}

static const struct {
	const char *name;
	remedy_fn *test;
	unsigned causes;
} table[] = {
#define REMEDY(name, causes) { #name, name, causes },
#include "oom_remedies.def"
#undef REMEDY
};

#define ROWS (sizeof(table) / sizeof(table[0]))
_Static_assert(ROWS <= OOM_REMEDIES, "room for every remedy");

static unsigned rank_of(const struct oom_remedy *r)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (table[i].name == r->name)
			return table[i].causes;
	return 0;
}

/* Insertion: there are few. */
static void insert(struct oom_remedy *list, size_t n, const struct oom_remedy *r, unsigned cause)
{
	bool first = rank_of(r) & 1u << cause;

	for (; n; n--) {
		bool before = rank_of(&list[n - 1]) & 1u << cause;

		if (before || (first == before && list[n - 1].saves >= r->saves))
			break;
		list[n] = list[n - 1];
	}
	list[n] = *r;
}

size_t oom_remedies(const struct oom *o, enum oom_cause cause, struct oom_remedy out[OOM_REMEDIES])
{
	size_t n = 0;

	for (size_t i = 0; i < ROWS; i++) {
		struct oom_remedy r = { .name = table[i].name };

		r.saves = table[i].test(o, r.what, r.how);
		r.enough = r.saves >= oom_missing(o);
		if (r.saves < o->capacity / 200 && !r.enough)
			continue;
		insert(out, n++, &r, cause);
	}
	return n;
}
