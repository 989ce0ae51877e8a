# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""FSDP1 over two devices with weights on the host: gathered for use, and each rank's part of the gradients goes to the host
when backward ends."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import runner
import truth

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
narrow = MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16)
model = FullyShardedDataParallel(runner.gpt(on_device=False, width=768, layers=6), auto_wrap_policy=ModuleWrapPolicy({runner.Block}),
                                 cpu_offload=CPUOffload(True), mixed_precision=narrow, device_id=rank)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
NAMES = ("_local_shard", "_mp_shard", "_full_param_padded", "_full_prec_full_param_padded")


def flat():
    return [state._handle.flat_param for state in FullyShardedDataParallel.fsdp_modules(model) if state._handle]


truth.holds("parameters", "shard or gathered weight", lambda: [p.__dict__.get(name) for p in flat() for name in NAMES])
truth.holds("gradients", "this rank's part", lambda: [p.__dict__.get("_saved_grad_shard") for p in flat()])
runner.train(model, optimizer, lambda: torch.randint(0, 12000, (4, 256), device="cuda"), inside=model.layers[1],
             loss_of=lambda net, x: torch.nn.functional.cross_entropy(net(x).float().flatten(0, 1), x.flatten()))
dist.destroy_process_group()
