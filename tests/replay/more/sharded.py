# SPDX-License-Identifier: Apache-2.0
"""FSDP2 as the first of four ranks, whose collectives answer at once: gathered weights, scattered gradients on streams of their own,
with weights that stay for backward and without, mixed precision, gradients accumulated, an evaluation in between."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)


def train(**how):
    model = nn.Sequential(*[nn.TransformerEncoderLayer(512, 8, 1536, batch_first=True, dropout=0.0) for _ in range(5)]).cuda()
    for layer in model:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        for part in range(2):
            model.set_requires_gradient_sync(part == 1)
            model(torch.randn(4, 48 + 32 * (step + part), 512, device="cuda")).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            model(torch.randn(9, 96, 512, device="cuda"))


train()
train(reshard_after_forward=False)
train(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
dist.destroy_process_group()
