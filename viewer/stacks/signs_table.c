/* SPDX-License-Identifier: Apache-2.0 */
#include "signs_table.h"

#include <string.h>

#include "../base/ending.h"
#include "signs.h"

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
	{ "torch/nn/modules/module.py", "Module", "zero_grad", STACK_ZERO_GRAD },
	{ "torch/nn/modules/", NULL, "__init__", STACK_PARAM },
	{ "torch/nn/modules/rnn.py", NULL, "flatten_parameters", STACK_PARAM },
	{ "torch/nn/parameter.py", NULL, NULL, STACK_PARAM },
	{ "torch/nn/init.py", NULL, NULL, STACK_PARAM },
	{ "torch/_tensor.py", "Tensor", "__deepcopy__", STACK_COPY },
	{ "/copy.py", NULL, "_reconstruct", STACK_REMADE },
	{ "/copy.py", NULL, "_deepcopy_dict", STACK_DICT },
	{ "transformers/modeling_utils.py", NULL, "from_pretrained", STACK_PARAM },
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

static bool starts(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(s, with, n);
}

/* Whether the name contains one of the parts, a list that ends with NULL. */
static bool has_part(const char *name, size_t len, const char *const *parts)
{
	for (; *parts; parts++)
		if (memmem(name, len, *parts, strlen(*parts)))
			return true;
	return false;
}

/* Classes that keep keys and values: "StaticCache", "PagedKVPool". Those that begin so cache
 * something else ("CacheCompiledArtifact", "CachedLoss"), and so do PyTorch's own. */
static bool is_cache(const struct defs_code *c, const char *last)
{
	static const char *const classes[] = { "KV", "KeyValue", NULL };
	size_t n = last - c->name.s;

	if (n >= 6 && !memcmp(last - 6, "Cache.", 6) && !strstr(c->file.s, "/torch/"))
		return true;
	return has_part(c->name.s, n, classes);
}

/* Partitions, buckets and buffers of gradients: "copy_grads_in_partition". */
static bool is_for_gradients(const char *last)
{
	static const char *const of[] = { "grads", "gradient", "grad_", NULL };
	static const char *const what[] = { "partition", "bucket", "buffer", NULL };
	size_t n = strlen(last);

	return has_part(last, n, of) && has_part(last, n, what);
}

/* "all_gather_coalesced" in a file about parameters: a shard becomes the whole parameter. */
static bool is_gathering(const struct defs_code *c)
{
	static const char *const names[] = { "gather", "Gather", NULL };
	const char *base = strrchr(c->file.s, '/');

	return strstr(base ? base : c->file.s, "param") && has_part(c->name.s, c->name.len, names);
}

static bool fits(const struct row *r, const struct defs_code *c, const char *last)
{
	bool qualified = last != c->name.s;

	return (!r->file || strstr(c->file.s, r->file)) &&
	       (!r->function || !strcmp(last, r->function)) &&
	       (!r->of || !qualified || starts(c->name.s, c->name.len, r->of));
}

uint32_t signs_of_code(const struct defs_code *c)
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
