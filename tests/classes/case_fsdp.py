# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""FSDP2 over two devices: shards, weights gathered for use, buffers of gathering and scattering."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import runner
import truth

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = runner.gpt()
for layer in model.layers:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)


def groups():
    return [m._get_fsdp_state()._fsdp_param_group for m in model.modules() if hasattr(m, "_get_fsdp_state")]


def gathered():
    for group in groups():
        for p in group.fsdp_params:
            yield from p.all_gather_outputs
            yield p.__dict__.get("_unsharded_param")
            yield p._sharded_param_data


def whole_gradients():
    for group in groups():
        for p in group.fsdp_params:
            yield p.unsharded_accumulated_grad
            whole = p.__dict__.get("_unsharded_param")
            yield None if whole is None else whole.grad


def buffers():
    for group in groups():
        result = group._all_gather_result
        yield None if result is None else result.all_gather_output
        for state in (group.comm_ctx.all_gather_state, group.comm_ctx.reduce_scatter_state):
            yield None if state is None else vars(state) if hasattr(state, "__dict__") else tuple(state)


truth.holds("parameters", "gathered weight", lambda: list(gathered()))
truth.holds("gradients", "gradient of a gathered weight", lambda: list(whole_gradients()))
truth.holds("communication", "buffer of a collective", lambda: list(truth.tensors_in(list(buffers()))))
runner.train(model, optimizer, model.batch, inside=model.middle())
dist.destroy_process_group()
