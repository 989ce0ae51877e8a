/* SPDX-License-Identifier: Apache-2.0 */
#include "signs.h"

#include "../../format/record.h"
#include "../base/bytes.h"
#include "../base/ending.h"

/* Functions of PyTorch and of well-known libraries that show what a block is for. */

/*
 * A row matches if the file's path contains `file`, the function's last part is `function`, and the
 * part before it begins with `of`; NULL matches all. All matching rows count. Until Python 3.10 a
 * function's recorded name is only its last part, and `of` is ignored.
 */
static const struct row {
	const char *file, *of, *function;
	uint32_t signs;
} rows[] = {
	{ "torch/nn/modules/module.py", NULL, "_call_impl", STACK_FORWARD },
	{ "torch/nn/modules/module.py", NULL, "_apply", STACK_PARAM },
	{ "torch/nn/modules/module.py", "Module", "state_dict", STACK_PARAM },
	{ "torch/nn/modules/module.py", "Module", "zero_grad", STACK_ZERO_GRAD },
	{ "torch/nn/modules/", NULL, "__init__", STACK_PARAM },
	{ "torch/nn/modules/rnn.py", NULL, "flatten_parameters", STACK_PARAM },
	{ "torch/nn/parameter.py", NULL, NULL, STACK_PARAM },
	{ "torch/nn/init.py", NULL, NULL, STACK_PARAM },
	{ "torch/_tensor.py", "Tensor", "__deepcopy__", STACK_COPY },
	{ "/copy.py", NULL, "_reconstruct", STACK_REMADE },
	{ "/copy.py", NULL, "_deepcopy_dict", STACK_DICT },
	{ "transformers/modeling_utils.py", NULL, "from_pretrained", STACK_PARAM },
	{ NULL, NULL, "create_weights", STACK_PARAM }, /* vLLM, SGLang: of a layer */
	{ "torch/distributed/tensor/_api.py", NULL, "distribute_module", STACK_PARAM },
	{ "torch/distributed/tensor/parallel/api.py", NULL, "parallelize_module", STACK_PARAM },
	{ "torch/nn/parallel/replicate.py", NULL, NULL, STACK_UNSHARDED },
	{ "deepspeed/runtime/zero/partition_parameters.py", NULL, NULL, STACK_PARAM },
	{ "safetensors/", NULL, NULL, STACK_LOAD },
	{ "torch/serialization.py", NULL, NULL, STACK_LOAD },
	{ "torch/optim/optimizer.py", "Optimizer.profile_hook_step", "wrapper", STACK_STEP },
	{ "torch/optim/optimizer.py", "Optimizer", "zero_grad", STACK_ZERO_GRAD },
	{ "torch/optim/optimizer.py", "Optimizer", "load_state_dict", STACK_STATE },
	{ "torch/optim/", NULL, "_init_group", STACK_STATE },
	{ "torch/optim/", NULL, "step", STACK_STEP },
	{ "torch/utils/checkpoint.py", NULL, "unpack_hook", STACK_RECOMPUTE },
	{ "torch/utils/checkpoint.py", NULL, "recompute_fn", STACK_RECOMPUTE },
	{ "torch/utils/checkpoint.py", "CheckpointFunction", "backward", STACK_RECOMPUTE },
	{ "torch/autograd/__init__.py", NULL, "backward", STACK_BACKWARD },
	{ "torch/autograd/function.py", NULL, "apply", STACK_FUNCTION },
	{ "torch/_functorch/eager_transforms.py", NULL, NULL, STACK_FUNCTION },
	{ "torch/autograd/function.py", "BackwardCFunction", "apply", STACK_NODE },
	{ "torch/autograd/__init__.py", NULL, "grad", STACK_BACKWARD | STACK_ASKED },
	{ "torch/autograd/__init__.py", NULL, "_make_grads", STACK_BACKWARD | STACK_CALLED },
	{ "torch/cuda/graphs.py", NULL, "make_graphed_callables", STACK_CAPTURE },
	{ "torch/utils/data/", NULL, NULL, STACK_DATA },
	{ "transformers/cache_utils.py", NULL, NULL, STACK_CACHE },
	{ "torch/nn/parallel/distributed.py", NULL, "__init__", STACK_BUCKET },
	{ "torch/nn/parallel/distributed.py", NULL, "_ddp_init_helper", STACK_BUCKET },
	{ "torch/nn/parallel/distributed.py", NULL, "_pre_forward", STACK_BUCKET },
	{ "torch/nn/utils/clip_grad.py", NULL, NULL, STACK_CLIP },
	{ "torch/amp/grad_scaler.py", NULL, NULL, STACK_CLIP },
	{ "torch/distributed/distributed_c10d.py", NULL, NULL, STACK_COLLECTIVE },
	{ "fsdp/_fully_shard/_fsdp_collectives.py", NULL, NULL, STACK_COLLECTIVE },
	{ "fsdp/_fully_shard/_fsdp_param.py", NULL, "_init_sharded_param", STACK_PARAM },
	{ "fsdp/_fully_shard/_fsdp_param.py", NULL, "reset_sharded_param", STACK_PARAM },
	{ "fsdp/_fully_shard/_fsdp_param.py", NULL, "alloc_all_gather_outputs", STACK_UNSHARDED },
	{ "fsdp/_fully_shard/_fsdp_param.py", NULL, "init_all_gather_outputs", STACK_UNSHARDED },
	{ "fsdp/_fully_shard/_fsdp_collectives.py", NULL, "foreach_reduce", STACK_REDUCED },
	{ "fsdp/_flat_param.py", NULL, "_alloc_padded_unsharded_flat_param", STACK_UNSHARDED },
	{ "fsdp/_runtime_utils.py", NULL, "_reduce_grad", STACK_REDUCED | STACK_COLLECTIVE },
};

/* Whether the class keeps keys and values: "StaticCache", "PagedKVPool". Classes that begin so
 * cache something else ("CacheCompiledArtifact", "CachedLoss"), and so do PyTorch's own.
 * "QKVLinear" makes keys and values, but keeps none. */
static bool is_cache(const struct defs_code *c, const char *last)
{
	size_t n = last - c->name.s;

	if (n >= 6 && !memcmp(last - 6, "Cache.", 6) && !strstr(c->file.s, "/torch/"))
		return true;
	return words_in(c->name.s, n, ONE_OF("KV", "KeyValue")) &&
	       !words_in(c->name.s, n, ONE_OF("QKV"));
}

/* Partitions, buckets and buffers of gradients, by the function's name:
 * "copy_grads_in_partition". */
static bool is_for_gradients(const char *last)
{
	size_t n = strlen(last);

	return words_in(last, n, ONE_OF("grads", "gradient", "grad_")) &&
	       words_in(last, n, ONE_OF("partition", "bucket", "buffer"));
}

/* "all_gather_coalesced" in a file about parameters: a shard becomes the whole parameter. */
static bool is_gathering(const struct defs_code *c)
{
	return strstr(ending_behind(c->file.s, '/'), "param") &&
	       words_in(c->name.s, c->name.len, ONE_OF("gather", "Gather"));
}

static bool fits(const struct row *r, const struct defs_code *c, const char *last)
{
	bool qualified = last != c->name.s;

	return (!r->file || strstr(c->file.s, r->file)) &&
	       (!r->function || !strcmp(last, r->function)) &&
	       (!r->of || !qualified || !strncmp(c->name.s, r->of, strlen(r->of)));
}

/* The signs of one function, enum stack_sign. */
static uint32_t signs_of_code(const struct defs_code *c)
{
	const char *last = ending_behind(c->name.s, '.');
	uint32_t signs = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fits(&rows[i], c, last))
			signs |= rows[i].signs;
	signs |= is_cache(c, last) ? STACK_CACHE : 0;
	signs |= is_for_gradients(last) ? STACK_GRADS : 0;
	signs |= is_gathering(c) ? STACK_UNSHARDED : 0;
	return signs;
}

#define DEPTH 4096 /* longer chains are cut */

enum learned {
	IS_MODULE = 1,
	IS_OPTIMIZER = 2, /* torch.optim's wrapper calls its step */
	IS_DRIVER = 4,	  /* its step leads to a forward or backward pass */
	STEPS = 8,	  /* it is an optimizer of the program's own, with a step */
	CALLS = 16,	  /* a method of it calls an optimizer */
	LEADS = 32,	  /* a method of it leads to such a pass */
	CLEARS = 64,	  /* it has a zero_grad */
	IS_FORWARD = 128, /* its `forward` calls modules */
};

void signs_init(struct signs *s, const struct defs *defs)
{
	*s = (struct signs){ .defs = defs };
}

void signs_free(struct signs *s)
{
	map_free(&s->codes);
	map_free(&s->nodes);
	map_free(&s->module_paths);
	map_free(&s->learned);
	map_free(&s->leading);
	map_free(&s->led);
}

/* A hash of the class that a method belongs to: its file and its name before the last dot. */
static uint64_t class_of(const struct defs_code *c)
{
	uint64_t h = bytes_hash(BYTES_HASH, c->file.s, c->file.len);

	return bytes_hash(h, c->name.s, ending_behind(c->name.s, '.') - c->name.s);
}

static const struct defs_code *code_of(const struct signs *s, uint32_t id)
{
	const struct defs_node *n = defs_node(s->defs, id);

	return n && n->frame == GMT_FRAME_PYTHON ? defs_code(s->defs, n->value >> 32) : NULL;
}

static void learn(struct signs *s, const struct defs_code *c, uint32_t what)
{
	*map_put(&s->learned, class_of(c), NULL) |= what;
}

static bool is_learned(const struct signs *s, const struct defs_code *c, uint32_t what)
{
	const uint32_t *at = map_get(&s->learned, class_of(c));

	return at && *at & what;
}

static bool is(const struct defs_code *c, const char *name)
{
	return !strcmp(ending_behind(c->name.s, '.'), name);
}

/* Names of an optimizer's step, in torch.optim and in Keras. */
static bool is_step(const struct defs_code *c)
{
	return is(c, "step") || is(c, "apply") || is(c, "apply_gradients");
}

/* Learns from calls inside torch: Module._call_impl calls forward, and the wrapper
 * Optimizer.profile_hook_step calls step, directly or through another wrapper. */
static void learn_node(struct signs *s, const struct defs_node *n)
{
	const struct defs_code *c = defs_code(s->defs, n->value >> 32), *caller, *before;
	const struct defs_node *parent = defs_node(s->defs, n->parent);

	if (!c || !(caller = code_of(s, n->parent)))
		return;
	before = parent ? code_of(s, parent->parent) : NULL;
	if (is(c, "forward") && is(caller, "_call_impl"))
		learn(s, c, IS_MODULE);
	if (is(c, "_wrapped_call_impl") && is(caller, "forward"))
		learn(s, caller, IS_FORWARD);
	if (is(c, "step") &&
	    (signs_of_code(caller) & STACK_STEP || (before && signs_of_code(before) & STACK_STEP)))
		learn(s, c, IS_OPTIMIZER);
}

/* A class whose method leads to a forward or backward pass drives the training. Its `step` is not
 * an optimizer's, and its methods create no optimizer state. */
static void learn_driver(struct signs *s, const struct defs_node *n)
{
	const struct defs_code *c = defs_code(s->defs, n->value >> 32);

	if (!c || !(signs_of_code(c) & (STACK_FORWARD | STACK_BACKWARD)))
		return;
	for (uint32_t id = n->parent; (c = code_of(s, id)); id = n->parent) {
		if (!map_add(&s->led, id))
			break;
		n = defs_node(s->defs, id);
		map_put(&s->leading, n->value >> 32, NULL);
		learn(s, c, is_step(c) ? LEADS | IS_DRIVER : LEADS);
	}
}

/* Learns from a method that clears gradients or calls an optimizer's step. Its class is an
 * optimizer around another one, or drives the training. */
static void learn_caller(struct signs *s, const struct defs_node *n)
{
	const struct defs_code *c = defs_code(s->defs, n->value >> 32), *caller;

	if (!c || !(signs_of_code(c) & (STACK_ZERO_GRAD | STACK_STEP)) ||
	    !strstr(c->file.s, "torch/optim/"))
		return;
	caller = code_of(s, n->parent);
	if (caller && ending_behind(caller->name.s, '.') != caller->name.s &&
	    !strstr(caller->name.s, "<locals>") && !strstr(caller->file.s, "torch/optim/"))
		learn(s, caller, CALLS);
}

/* Whether the class or its file is named like an optimizer. */
static bool is_named_optimizer(const struct defs_code *c)
{
	size_t n = ending_behind(c->name.s, '.') - c->name.s;

	return words_in(c->name.s, n,
			ONE_OF("Optim", "Adam", "SGD", "Lion", "Lamb", "Muon", "RMSprop", "Adagrad",
			       "Shampoo")) ||
	       (strstr(c->file.s, "optim") && !strstr(c->file.s, "torch/optim/"));
}

/* A `step` alone does not make a class an optimizer: schedulers, averages of weights, simulations
 * and interpreters have one too. torch.optim's optimizers are recognized by their wrapper. */
static bool is_own_optimizer(const struct signs *s, const struct defs_code *c)
{
	return is_step(c) && ending_behind(c->name.s, '.') != c->name.s &&
	       !strstr(c->name.s, "<locals>.step") &&
	       !is_learned(s, c, IS_MODULE | IS_OPTIMIZER | IS_DRIVER) &&
	       ((is(c, "step") && is_learned(s, c, CLEARS)) || is_named_optimizer(c));
}

static void learn_all(struct signs *s)
{
	const struct defs_node *nodes = s->defs->nodes.items;
	const struct defs_code *codes = s->defs->codes.items;

	s->ready = true;
	for (size_t i = 0; i < s->defs->nodes.count; i++)
		if (nodes[i].frame == GMT_FRAME_PYTHON) {
			learn_node(s, &nodes[i]);
			learn_driver(s, &nodes[i]);
			learn_caller(s, &nodes[i]);
		}
	for (size_t i = 0; i < s->defs->codes.count; i++)
		if (is(&codes[i], "zero_grad"))
			learn(s, &codes[i], CLEARS);
	for (size_t i = 0; i < s->defs->codes.count; i++)
		if (is_own_optimizer(s, &codes[i]))
			learn(s, &codes[i], STEPS);
}

static bool makes_a_module(const char *method)
{
	return words_equal(method, strlen(method),
			   ONE_OF("__init__", "reset_parameters", "init_weights", "_init_weights",
				  "__deepcopy__"));
}

/* Whether memory allocated by the class can be optimizer state. Code that drives the training can
 * hold an optimizer, but allocates for all purposes. */
static bool keeps_state(uint32_t learned)
{
	return learned & IS_OPTIMIZER || (learned & (STEPS | CALLS) && !(learned & LEADS));
}

static uint32_t find_code(struct signs *s, uint32_t id)
{
	const struct defs_code *c = defs_code(s->defs, id);
	const uint32_t *at;
	uint32_t bits, what;

	if (!c)
		return STACK_PYTHON;
	bits = signs_of_code(c) | STACK_PYTHON;
	at = map_get(&s->learned, class_of(c));
	what = at ? *at : 0;
	if (what & IS_MODULE)
		bits |= makes_a_module(ending_behind(c->name.s, '.')) ? STACK_PARAM : STACK_METHOD;
	if (keeps_state(what) && strstr(ending_behind(c->name.s, '.'), "bucket"))
		bits |= STACK_BUCKET;
	if (is(c, "forward") && (what & IS_FORWARD || strstr(c->file.s, "/torch/nn/modules/")))
		bits |= STACK_FORWARD;
	if (is_step(c) && what & (IS_OPTIMIZER | STEPS))
		bits |= STACK_STEP;
	else if (!is(c, "step") && keeps_state(what) && !map_get(&s->leading, id))
		bits |= STACK_STATE;
	return bits;
}

static uint32_t code_signs(struct signs *s, uint32_t id)
{
	return map_known(&s->codes, id, find_code(s, id));
}

/* Combines signs from the outside in: an inner sign ends an outer one that excludes it. A module
 * keeps its buffers in a plain dictionary. model.state_dict() is an ordered one, mostly of weights.
 * Gradients that a Function's backward computes are passed on, as in checkpointing. */
static uint32_t enter(uint32_t outer, uint32_t frame)
{
	if (frame & STACK_REMADE)
		outer &= ~STACK_DICT;
	if (frame & STACK_DICT)
		outer &= ~STACK_REMADE;
	if (outer & STACK_REMADE)
		frame &= ~STACK_COPY;
	if (outer & STACK_NODE)
		frame &= ~STACK_ASKED;
	if (frame & STACK_STEP)
		outer &= ~(STACK_FORWARD | STACK_PARAM);
	if (frame & STACK_BACKWARD)
		outer &= ~(STACK_FORWARD | STACK_RECOMPUTE | STACK_PARAM | STACK_STEP);
	if (frame & STACK_FORWARD)
		outer &= ~(STACK_PARAM | STACK_STATE | STACK_STEP | STACK_BACKWARD);
	return outer | frame;
}

/* The first frame inside a module's call begins a path of modules, and each frame further in
 * extends it. */
static void note_module_path(struct signs *s, uint32_t id, uint32_t bits, const struct defs_node *n)
{
	const uint32_t *outer = map_get(&s->module_paths, n->parent);

	if (!(bits & STACK_FORWARD))
		return;
	*map_put(&s->module_paths, id, NULL) =
		(uint32_t)bytes_hash(outer ? *outer : 1, &n->value, sizeof(n->value)) | 1;
}

static uint32_t find_chain(struct signs *s, uint32_t id)
{
	uint32_t chain[DEPTH], bits = 0;
	size_t n = 0;
	const uint32_t *known = NULL;
	const struct defs_node *node;

	while (id && n < DEPTH && !(known = map_get(&s->nodes, id)) &&
	       (node = defs_node(s->defs, id)) && node->frame == GMT_FRAME_PYTHON) {
		chain[n++] = id;
		id = node->parent;
	}
	bits = known ? *known : 0;
	while (n--) {
		node = defs_node(s->defs, chain[n]);
		bits = enter(bits, code_signs(s, node->value >> 32));
		*map_put(&s->nodes, chain[n], NULL) = bits;
		note_module_path(s, chain[n], bits, node);
	}
	return bits;
}

/* The Python part of a stack with frames of both kinds. */
static uint32_t python_of(const struct signs *s, uint32_t stack)
{
	const struct defs_node *n = stack ? defs_node(s->defs, stack) : NULL;

	return n && n->frame == GMT_FRAME_JOIN ? (uint32_t)n->value : stack;
}

uint32_t signs_find_further(struct signs *s, uint32_t stack)
{
	uint32_t i = stack % SIGNS_RECENT;

	if (stack && !s->ready)
		learn_all(s);
	s->recent[i].stack = stack;
	return s->recent[i].bits = find_chain(s, python_of(s, stack));
}

uint32_t signs_module_path(struct signs *s, uint32_t stack)
{
	const uint32_t *at =
		signs_find(s, stack) ? map_get(&s->module_paths, python_of(s, stack)) : NULL;

	return at ? *at : 0;
}

uint64_t signs_line(const struct signs *s, uint32_t stack)
{
	const struct defs_code *c;
	const struct defs_node *n;

	for (uint32_t id = python_of(s, stack); (c = code_of(s, id)); id = n->parent) {
		n = defs_node(s->defs, id);
		if (!is(c, "__torch_function__") && !is(c, "__torch_dispatch__"))
			return n->value;
	}
	return 0;
}
