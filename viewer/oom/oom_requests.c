/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function for each REMEDY of oom_remedies.def. It returns the bytes that the change would have
 * saved (0 = not applicable), and writes what to do and how the figure is known. Figures are
 * sums of live blocks, or stated shares of such sums.
 */

#include "../../format/record.h"
#include "../advise/advise.h"
#include "../base/arithmetic.h"
#include "../classes/study.h"
#include "oom.h"

enum { PIECES = 8 };

#define SEGMENT_BYTES (2ull << 20) /* PyTorch rounds large segments up to a multiple */

uint64_t remedy_raise_limit(const struct oom *o, char *what, char *how)
{
	if (o->refusal.event.kind != GMT_BLOCK_OOM || o->refusal.fail.kind ||
	    o->room.free < o->asked)
		return 0;
	oom_say(what,
		"Raise the program's own limit (set_per_process_memory_fraction) by %s or more",
		B(o->asked));
	oom_say(how, "%s were free on the device when PyTorch gave up", B(o->room.free));
	return o->room.free;
}

uint64_t remedy_free_device(const struct oom *o, char *what, char *how)
{
	if (!o->others)
		return 0;
	oom_say(what,
		"End the other programs on this device (nvidia-smi lists them), or use another "
		"device");
	oom_say(how,
		"%s are in use on the device, %s of it by this program. The rest, less a context, "
		"belongs to others",
		B(o->room.total - o->room.free), B(o->room.reserved + o->libraries));
	return o->others;
}

uint64_t remedy_held_unused(const struct oom *o, char *what, char *how)
{
	/* The optimizer of a model that ran before is gone. */
	bool over =
		o->compared[CATEGORY_optimizer_state] && !o->shot.bytes[CATEGORY_optimizer_state];
	bool earlier = over && o->earlier.bytes > o->unused.bytes;
	const struct used_up *u = earlier ? &o->earlier : &o->unused;
	const struct holder *most = u->holders.items;

	if (u->bytes <= o->capacity / 50)
		return 0;
	oom_say(what,
		"Free what %s%s allocated (delete every reference to it, also in callbacks and "
		"closures), or keep it on the host%s until it is used again",
		WHO(&most->owner), u->holders.count > 1 ? " and other lines" : "",
		most->category == CATEGORY_inputs ? ", or in fewer bytes (pictures as uint8),"
						  : "");
	oom_say(how,
		"%s, of it %s of this line, were used last %sbefore %s %zu. Whether a later "
		"one needs them is not known",
		B(u->bytes), B(most->bytes), u->step ? "in or " : "", o->by_call ? "pass" : "step",
		u->step ? u->step : 1);
	if (u == &o->unused && o->unused_saved >= u->bytes / 4)
		text_add(how, OOM_TEXT,
			 ". Graphs of earlier passes hold %s: delete the results of those passes "
			 "too",
			 B(o->unused_saved));
	return u->bytes;
}

uint64_t remedy_refused_attempts(const struct oom *o, char *what, char *how)
{
	oom_say(what, "Keep no caught exception (keep str(error) instead), leave the except block "
		      "before the next attempt, and delete the tensors of the failed attempt");
	oom_say(how, "Inputs and results of earlier forward passes that ran out of memory");
	return o->attempts.bytes;
}

uint64_t remedy_allocator(const struct oom *o, char *what, char *how)
{
	const struct oom_setting *x = o->settings.fits;

	if (!x)
		return 0;
	oom_say(what,
		strcmp(x->conf, "default")
			? "Set PYTORCH_CUDA_ALLOC_CONF=%s: the request fits, with "
			  "%s to spare"
			: "Remove the setting PYTORCH_CUDA_ALLOC_CONF=%s, in the script if "
			  "that sets it: the request fits, with %s to spare",
		strcmp(x->conf, "default") ? x->conf : o->settings.conf, B(x->outcome.bytes));
	oom_say(how,
		"By a replay of the recorded requests on the same device. With the recorded "
		"setting the replay runs out of memory too, and lacks %s",
		B(o->settings.own.bytes));
	return o->settings.own.bytes + x->outcome.bytes;
}

/* Not if less than half of the model is gathered at once: then its layers are sharded individually
 * already. */
uint64_t remedy_gather_less(const struct oom *o, char *what, char *how)
{
	bool asked = o->collective || oom_gathered_by_hand(o);
	uint64_t of_rank =
		BYTES_OF(b, &o->shot.moment,
			 b->category == CATEGORY_parameters &&
				 !(model_signs(o->shot.model, b->stack) & STACK_UNSHARDED));

	if ((!o->unsharded && !asked) ||
	    2 * (o->unsharded + (asked ? o->block : 0)) < o->world * of_rank)
		return 0;
	oom_say(what,
		"Gather less at a time: shard each layer by itself (fully_shard on the layers, "
		"then on the model) and reshard after forward");
	oom_say(how,
		"%s in gathered tensors, and half of the %s that were requested, if units are half "
		"as large",
		B(o->unsharded), B(o->block));
	return o->unsharded + o->block / 2;
}

uint64_t remedy_in_pieces(const struct oom *o, char *what, char *how)
{
	const struct oom_spike *p = &o->spike;

	if (!p->count || p->count > OOM_SPIKE_MOST || p->bytes < o->capacity / 4 || !p->unsaved ||
	    !o->shot.model->spans.forwards || p->largest < 5 * p->next || o->grown > p->bytes / 4 ||
	    oom_is_room(o, &o->wanted) || stage_is_backward(o->wanted_stage))
		return 0;
	oom_say(what,
		"If little of each piece is kept (a sum, the best values) and no piece needs the "
		"others, compute this and what follows in %d pieces (samples, rows, positions or "
		"classes of %s%s)",
		PIECES, WHO(&p->owner), oom_only_forward(o) ? "" : ", a fused or chunked loss");
	if (p->count == 1)
		oom_say(how, "One tensor of %s. At most all but one piece is saved", B(p->bytes));
	else
		oom_say(how,
			"%zu tensors of %s to %s, of which %s are not saved for backward. At most "
			"all but one piece is saved",
			p->count, B(p->least), B(p->largest), B(p->unsaved));
	return p->unsaved - p->unsaved / PIECES;
}

uint64_t remedy_shard(const struct oom *o, char *what, char *how)
{
	const uint64_t *b = o->shot.bytes;
	/* FSDP shards these and leaves buffers whole. State that is still to be made is not in b.
	 * */
	uint64_t state = o->projected ? o->projected : o->state,
		 all = b[CATEGORY_parameters] - o->loaded + b[CATEGORY_gradients] + state;

	all -= arithmetic_least(all, o->earlier.bytes);
	if (all < o->capacity / 3 || o->unsharded || o->collective || o->sharded)
		return 0;
	oom_say(what,
		"Shard the model over two devices (FSDP), or use parameters of half the bytes");
	oom_say(how,
		"Half of the parameters%s that this recording shows. What is gathered, and what "
		"something else holds too, stays",
		state ? ", gradients and optimizer state" : " and gradients");
	return all / 2;
}

uint64_t remedy_smaller_cache(const struct oom *o, char *what, char *how)
{
	uint64_t lacks = oom_missing(o) + SEGMENT_BYTES * o->engine.pieces;

	if (!o->engine.phase || o->engine.cache < lacks || !o->room.total)
		return 0;
	oom_say(what,
		"Make the KV cache smaller by %s or more (vLLM: gpu_memory_utilization, SGLang: "
		"mem_fraction_static, lower by %.2f)",
		B(lacks), (double)(100 * lacks / o->room.total + 1) / 100);
	oom_say(how, "This request lacks %s, and pieces of the cache are rounded up; it takes %s",
		B(oom_missing(o)), B(o->engine.cache));
	return lacks;
}

/* Whether the last option of the command that sets a batch size sets it to 1: "--batch-size=1",
 * "train.batch 1", "-b 1". */
static bool batch_of_one(const struct defs *defs)
{
	struct defs_text argv = defs_meta(defs, "argv");
	const char *end = argv.s + argv.len;
	bool one = false;

	for (const char *word = argv.s, *next; word < end; word = next) {
		size_t len = strcspn(word, " "), name = strcspn(word, " =");
		const char *value = word + name + 1; /* after "=", or the next word */
		bool batch = name > 4 && memmem(word, name, "batch", 5);

		next = word + len + 1;
		if ((batch || (len == 2 && !memcmp(word, "-b", 2))) && value < end &&
		    isdigit((unsigned char)*value))
			one = value[0] == '1' && (!value[1] || value[1] == ' ');
	}
	return one;
}

/* Parameters, one gradient for each trained parameter and the state exceed the capacity, so that no
 * batch size fits. */
static bool too_large_without_batch(const struct oom *o)
{
	const uint64_t *b = o->shot.bytes;
	uint64_t gradients =
		b[CATEGORY_gradients] > o->trainable ? b[CATEGORY_gradients] : o->trainable;

	return o->shot.model->spans.trains && !o->evaluation &&
	       b[CATEGORY_parameters] + gradients + b[CATEGORY_optimizer_state] > o->capacity;
}

/* Without a backward pass the batch can be computed in parts whose results are joined. */
static void say_parts(const struct oom *o, char *what)
{
	struct owner call = owners_caller(&o->timeline->owners, o->wanted.stack);

	if (oom_only_forward(o) && !o->engine.phase && call.file[0] && !oom_has_graphs(o))
		text_add(
			what, OOM_TEXT,
			": call the model for a part of it at a time in %s, and join the results%s",
			WHO(&call), o->samples == 1 ? ", if they can be (tiles of a picture)" : "");
}

uint64_t remedy_longer_samples(const struct oom *o, char *what, char *how)
{
	uint64_t needed = o->allocated + o->block;

	if (!o->longer.steps || o->longer.peak >= o->capacity || o->longer.peak >= needed)
		return 0;
	oom_say(what, "If this step has longer samples, not more of them, leave out or cut those "
		      "that are much longer than others, or form batches by their length");
	oom_say(how,
		"The inputs of this step are %.1f times as large as in any of the %zu steps before "
		"(%s, %s then), whose peaks were at most %s",
		(double)o->longer.inputs / (double)o->longer.before, o->longer.steps,
		B(o->longer.inputs), B(o->longer.before), B(o->longer.peak));
	return needed - o->longer.peak;
}

uint64_t remedy_smaller_batch(const struct oom *o, char *what, char *how)
{
	const struct spans *s = &o->shot.model->spans;
	/* torch.autograd.grad adds no gradients up */
	bool adds_up = ANY_OF(x, s->items, s->count, x->phase == PHASE_BACKWARD && !x->asked);
	bool kept = o->read_each || o->served, pieces = oom_is_of_pieces(o);
	uint64_t asked = oom_asked_for_batch(o), all = o->current + asked - (kept ? o->calls : 0),
		 inputs = oom_first_inputs(o), script;
	/* A backward pass might follow for all of them. */
	bool so_far = o->timeline->steps.basis == STEPS_FORWARD && !o->by_call && !o->evaluation &&
		      o->at_step > 1 && !kept;

	if (pieces) /* their results are put together whatever their number in a pass is */
		all = o->wanted_stage == STAGE_OUTSIDE
			      ? 0
			      : arithmetic_least(o->of_pass, o->current) + asked;

	if (o->phase == PHASE_OPTIMIZER || o->engine.wanted || o->rows.bytes >= all / 2 ||
	    !o->shot.model->spans.forwards || all < o->capacity / 20 || all < oom_missing(o) ||
	    batch_of_one(o->shot.model->defs) || too_large_without_batch(o))
		return 0;
	oom_say(what, "%s%s%s",
		o->samples == 1 ? "Make the sample smaller, the batch is one" : "Halve the batch",
		o->samples == 1	    ? ""
		: !o->engine.phase  ? (adds_up && !o->evaluation && !o->no_backward
					       ? " (and accumulate gradients over two)"
					       : "")
		: o->engine.samples ? " (vLLM: max_num_seqs)"
				    : " (vLLM: max_num_batched_tokens)",
		o->samples ? "" : ", or make samples smaller");
	say_parts(o, what);
	inputs = pieces ? 0 : arithmetic_least(inputs, all);
	script = pieces ? 0 : arithmetic_least(o->by_script, all - inputs);
	oom_say(how,
		"Half of the inputs, activations and temporaries of %s%s (%s), if they grow with "
		"it",
		pieces	 ? "this pass"
		: so_far ? "all passes so far"
			 : "this step",
		asked ? " and of the request" : "", B(all));
	if (inputs >= all / 20)
		text_add(how, OOM_TEXT,
			 ". Inputs from before the first pass (%s) may be of more than one batch",
			 B(inputs));
	if (!oom_is_of_samples(o))
		return all / 2;
	if (script >= all / 20)
		text_add(how, OOM_TEXT, ". The script makes %s of it outside of modules",
			 B(script));
	if (inputs + script >= all / 20)
		text_add(how, OOM_TEXT, ". Saves up to %s", B(all / 2));
	return (all - inputs - script) / 2;
}

/* One line makes several tensors between passes, and nothing has read them yet. */
uint64_t remedy_one_by_one(const struct oom *o, char *what, char *how)
{
	const struct span *span =
		steps_span(&o->timeline->steps, &o->timeline->model.spans, o->refusal.event.seq);
	struct oom_held made = { 0 };
	size_t blocks = 0;

	if (!span || span->phase != PHASE_OTHER || o->wanted_stage != STAGE_OUTSIDE ||
	    !o->shot.model->spans.backwards || o->wanted.category == CATEGORY_inputs)
		return 0;
	FOR_BLOCKS (b, &o->shot.moment) {
		struct block_uses x;

		if (b->seq < span->extent.first_seq ||
		    !owners_made(&o->timeline->owners, b, &o->wanted_owner))
			continue;
		uses_of(o->shot.model, b->life - 1, &x);
		if (x.works.first != oom_last_use(o, b) ||
		    study_gathers(o->shot.model->watcher, b->stack)) /* collected for later */
			return 0;
		oom_hold(&made, b);
		blocks++;
	}
	if (blocks < 3)
		return 0;
	oom_say(what,
		"Make the tensors of %s one at a time, and reduce and free each before the next, "
		"unless all are needed together",
		WHO(&o->wanted_owner));
	oom_say(how,
		"%s wait that nothing has read since they were made. At most all but the largest",
		MANY(blocks, "tensor"));
	return made.bytes + o->block - arithmetic_most(made.largest.size, o->block);
}

/* Weights that autocast converted and no graph holds: autocast caches them until its context ends.
 * */
uint64_t remedy_autocast_cache(const struct oom *o, char *what, char *how)
{
	bool asked = advise_is_by_autocast(o->timeline, &o->wanted);
	struct oom_held copies = { 0 };
	uint64_t largest;

	FOR_BLOCKS (b, &o->shot.moment)
		if (map_get(&o->copies, b->seq) && !(b->state & LIFE_SAVED))
			oom_hold(&copies, b);
	largest = arithmetic_most(copies.largest.size, asked ? o->block : 0);
	if (!copies.bytes || o->phase == PHASE_BACKWARD)
		return 0;
	oom_say(what,
		"Convert the model once (model.half() or .bfloat16()), or turn off the cache of "
		"converted weights: torch.autocast(..., cache_enabled=False)");
	oom_say(how,
		"%s in copies of weights that autocast made and that no graph holds. Without the "
		"cache each weight is converted when it is used: all but the largest",
		B(copies.bytes));
	return copies.bytes + (asked ? o->block : 0) - largest;
}

/* Results of backward nodes that graphs hold, for a second backward pass through them. */
uint64_t remedy_create_graph(const struct oom *o, char *what, char *how)
{
	uint64_t bytes = BYTES_OF(b, &o->shot.moment,
				  oom_is_in_graph(b) &&
					  model_born(o->shot.model, b)->stage == STAGE_BACKWARD);

	if (bytes < o->allocated / 4)
		return 0;
	oom_say(what,
		"Leave create_graph=True out of torch.autograd.grad (or backward) where nothing "
		"differentiates its result, and .detach() results that are kept");
	oom_say(how, "%s of results of backward nodes are saved for another backward pass",
		B(bytes));
	return bytes;
}

/* Before the first pass a function read weights for the last time and made smaller ones of them: a
 * conversion whose source is still alive. */
uint64_t remedy_converted(const struct oom *o, char *what, char *how)
{
	struct timeline *t = o->timeline;
	const struct holder *to = NULL;
	struct oom_held read = { 0 };

	if (o->shot.model->spans.forwards || !uses_complete(o->shot.model))
		return 0;
	FOR_BLOCKS (b, &o->shot.moment) {
		uint32_t last = oom_last_use(o, b);
		struct block use = { .stack = last ? uses_kind(&t->model.uses, last)->stack : 0 };
		struct owner reader = owners_find(&t->owners, &use);
		struct owner maker = owners_find(&t->owners, b);
		const struct holder *made =
			FIRST_OF(h, o->holders.items, o->holders.count,
				 h->category == CATEGORY_parameters &&
					 owners_same_function(&reader, &h->owner));

		if (!use.stack || b->category != CATEGORY_parameters || !made ||
		    owners_same_function(&reader, &maker))
			continue;
		to = made;
		oom_hold(&read, b);
	}
	if (!to || 4 * to->bytes > 3 * read.bytes)
		return 0;
	oom_say(what,
		"Let go of each weight as soon as %s has converted it, if the new one takes its "
		"place: also in lists of modules or parameters that a loop goes through",
		WHO(&to->owner));
	oom_say(how, "%s of weights were used last where others were made of them. All but one",
		B(read.bytes));
	return read.bytes - read.largest.size;
}

/* Something was computed of it, and the frame that made the request has it in a variable. */
static bool is_read_now(const struct oom *o, const struct block *b)
{
	uint32_t last = oom_last_use(o, b);

	return last && !uses_kind(&o->timeline->model.uses, last)->transfer &&
	       ANY_OF(x, o->variables, o->variable_count,
		      variable_is_in(x, b) && x->owner.line == o->wanted_owner.line &&
			      !strcmp(x->owner.file, o->wanted_owner.file));
}

/* Half of the memory in use is inputs, before the first pass. */
uint64_t remedy_data_on_host(const struct oom *o, char *what, char *how)
{
	uint64_t now =
		BYTES_OF(b, &o->shot.moment, b->category == CATEGORY_inputs && is_read_now(o, b));
	uint64_t first = oom_first_inputs(o), inputs = first > now ? first - now : 0;
	const struct holder *most =
		FIRST_OF(h, o->holders.items, o->holders.count, h->category == CATEGORY_inputs);

	if (!most || inputs < o->allocated / 2 || inputs <= o->block ||
	    o->shot.model->spans.forwards)
		return 0;
	oom_say(what,
		"If each step reads only a part of the data of %s, keep them on the host "
		"(pin_memory()), and move what a step reads to the device in that step",
		WHO(&most->owner));
	oom_say(how, "%s of inputs were there before the first pass. What a step reads comes back",
		B(inputs));
	return inputs - o->block;
}

/* Outputs that a script keeps of many calls. */
static uint64_t say_outputs(const struct oom *o, char *what, char *how)
{
	struct oom_held kept = { 0 };
	struct owner owner;

	FOR_BLOCKS (b, &o->shot.moment)
		if (map_get(&o->listed, b->seq))
			oom_hold(&kept, b);
	owner = owners_find(&o->timeline->owners, &kept.largest);
	oom_say(what,
		"Move the outputs of %s to the host as they are made (.cpu()), and back when they "
		"are read, if not all of them are read at once",
		WHO(&owner));
	oom_say(how, "%s in outputs of earlier calls that no graph holds. All but the largest",
		B(kept.bytes));
	return kept.bytes - kept.largest.size;
}

uint64_t remedy_results_on_host(const struct oom *o, char *what, char *how)
{
	struct owner owner = { 0 };
	uint64_t bytes = oom_results(o, &owner);

	if (!bytes)
		return say_outputs(o, what, how);
	oom_say(what,
		"Keep the results of all passes on the host: make the tensor of %s with "
		"device=\"cpu\", and move each pass's result there (.cpu()) before adding it",
		WHO(&owner));
	oom_say(how,
		"%s in tensors that were allocated for the results and stay through all "
		"passes, and one as large as the request, which goes to the host too",
		B(bytes));
	return bytes;
}
