# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""Tensor and sequence parallelism by PyTorch's own styles: tensors around others, of which autograd saves the outer one."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn import functional as F

import runner
import truth

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (2,))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(512), nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


model = nn.Sequential(nn.Embedding(8000, 512), *(Layer() for _ in range(4)), nn.Linear(512, 8000)).cuda()
parallelize_module(model, mesh, {
    "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "5": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
for layer in list(model)[1:5]:
    parallelize_module(layer, mesh, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)),
                                     "down": RowwiseParallel(output_layouts=Shard(1))})
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, lambda: torch.randint(0, 8000, (8, 256)).cuda())
dist.destroy_process_group()
