/* SPDX-License-Identifier: Apache-2.0 */
#include "signs_table.h"

#include <string.h>

#include "signs.h"

/*
 * A row fits if the file's path holds `file` and the function's last part is `function` and the
 * part before it begins with `of`; NULL fits all. All rows that fit count. Up to Python 3.10 a
 * function's recorded name is its last part only: there `of` is not asked.
 */
static const struct row {
	const char *file, *of, *function;
	uint32_t signs;
} rows[] = {
	{ "torch/nn/modules/module.py", NULL, "_call_impl", STACK_FORWARD },
	{ "torch/nn/modules/module.py", NULL, "_apply", STACK_PARAM },
	{ "torch/nn/modules/module.py", NULL, "_load_from_state_dict", STACK_PARAM },
	{ "torch/nn/modules/module.py", "Module", "zero_grad", STACK_ZERO_GRAD },
	{ "torch/nn/modules/lazy.py", NULL, NULL, STACK_PARAM },
	{ "torch/nn/modules/rnn.py", NULL, "flatten_parameters", STACK_PARAM },
	{ "torch/nn/modules/", NULL, "__init__", STACK_PARAM },
	{ "torch/nn/modules/", NULL, "reset_parameters", STACK_PARAM },
	{ "torch/nn/parameter.py", NULL, NULL, STACK_PARAM },
	{ "torch/nn/init.py", NULL, NULL, STACK_PARAM },
	{ "torch/_tensor.py", "Tensor", "__deepcopy__", STACK_COPY },
	{ "/copy.py", NULL, "_reconstruct", STACK_REMADE },
	{ "/copy.py", NULL, "_deepcopy_dict", STACK_DICT },
	{ "transformers/modeling_utils.py", NULL, "from_pretrained", STACK_PARAM },
	{ "transformers/models/", NULL, "__init__", STACK_PARAM },
	{ "safetensors/", NULL, NULL, STACK_LOAD },
	{ "torch/serialization.py", NULL, NULL, STACK_LOAD },
	{ "torch/optim/optimizer.py", "Optimizer.profile_hook_step", "wrapper", STACK_STEP },
	{ "torch/optim/optimizer.py", NULL, "profile_hook_step", STACK_STEP },
	{ "torch/optim/optimizer.py", "Optimizer", "zero_grad", STACK_ZERO_GRAD },
	{ "torch/optim/optimizer.py", "Optimizer", "load_state_dict", STACK_STATE },
	{ "torch/optim/", NULL, "_init_group", STACK_STATE },
	{ "torch/optim/", NULL, "step", STACK_STEP },
	{ "torch/utils/checkpoint.py", NULL, "unpack_hook", STACK_RECOMPUTE },
	{ "torch/utils/checkpoint.py", NULL, "recompute_fn", STACK_RECOMPUTE },
	{ "torch/utils/checkpoint.py", "CheckpointFunction", "backward", STACK_RECOMPUTE },
	{ "torch/autograd/__init__.py", NULL, "backward", STACK_BACKWARD },
	{ "torch/autograd/graph.py", NULL, "_engine_run_backward", STACK_BACKWARD },
	{ "torch/autograd/__init__.py", NULL, "grad", STACK_BACKWARD | STACK_ASKED },
	{ "torch/autograd/__init__.py", NULL, "_make_grads", STACK_BACKWARD },
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
	{ "fsdp/_flat_param.py", NULL, "flatten_tensors", STACK_PARAM },
	{ "fsdp/_flat_param.py", NULL, "shard", STACK_PARAM },
	{ "fsdp/_runtime_utils.py", NULL, "_reduce_grad", STACK_REDUCED | STACK_COLLECTIVE },
};

static bool starts(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(s, with, n);
}

/* Classes of the program's own that keep keys and values: "KVCache", "StaticCache". */
static bool is_cache(const char *name, size_t class_len)
{
	return class_len >= 5 && (memmem(name, class_len, "Cache", 5) != NULL);
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
	const char *dot = strrchr(c->name.s, '.'), *last = dot ? dot + 1 : c->name.s;
	uint32_t signs = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fits(&rows[i], c, last))
			signs |= rows[i].signs;
	if (is_cache(c->name.s, last - c->name.s))
		signs |= STACK_CACHE;
	return signs;
}
