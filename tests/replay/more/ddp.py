# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with small buckets, gradients accumulated without communication, and batches of other lengths: one rank
each of NCCL and of gloo, whose reductions go over the host."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("cpu:gloo,cuda:nccl", store=dist.HashStore(), rank=0, world_size=1)
over_host = dist.new_group([0], backend="gloo")


def train(group, **how):
    model = nn.Sequential(*[nn.Sequential(nn.LayerNorm(640), nn.Linear(640, 2560), nn.GELU(), nn.Linear(2560, 640)) for _ in range(5)]).cuda()
    parallel = DistributedDataParallel(model, process_group=group, bucket_cap_mb=9, **how)
    optimizer = torch.optim.AdamW(parallel.parameters())
    for step in range(5):
        with parallel.no_sync():
            parallel(torch.randn(6, 40 + 24 * step, 640, device="cuda")).square().mean().backward()
        parallel(torch.randn(6, 160 - 24 * step, 640, device="cuda")).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(parallel.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


train(None)
train(None, gradient_as_bucket_view=True)
train(over_host)
dist.destroy_process_group()
