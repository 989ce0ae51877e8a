# SPDX-License-Identifier: Apache-2.0
"""Quantizing the layers of a model one after the other: for each, the products of its inputs are summed over calibration batches."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, INNER = 2560, 10240


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.up, self.gate, self.down = nn.Linear(WIDTH, INNER), nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Quantizer:
    def __init__(self, layer):
        self.layer, self.columns = layer, layer.weight.shape[1]
        self.partials, self.samples = {}, 0

    def add_batch(self, inp):
        inp = inp.reshape(-1, inp.shape[-1]).t()
        self.samples += inp.shape[1]
        if sys.argv[1] == "fixed":
            if inp.device not in self.partials:
                self.partials[inp.device] = torch.zeros(self.columns, self.columns, dtype=torch.float32, device=inp.device)
            inp = inp.float()
            self.partials[inp.device].addmm_(inp, inp.t())
            return
        xtx = inp.float().matmul(inp.float().t())
        if inp.device in self.partials:
            self.partials[inp.device].add_(xtx)
        else:
            self.partials[inp.device] = xtx

    def quantize(self):
        hessian = self.partials.popitem()[1].mul_(2 / self.samples)
        scale = self.layer.weight.abs().amax(1, keepdim=True) / 7
        worth = hessian.diagonal().add(0.01)
        self.layer.weight.data.copy_((self.layer.weight / scale).round_().mul_(scale))
        return worth.mean()


def calibrate(block, inputs):
    for name in ("up", "gate", "down"):
        layer = getattr(block, name)
        task = Quantizer(layer)
        handle = layer.register_forward_hook(lambda m, i, o: task.add_batch(i[0].data))
        for x in inputs:
            block(x.cuda())
        handle.remove()
        task.quantize()
    return [block(x.cuda()).cpu() for x in inputs]


blocks = nn.ModuleList(Block() for _ in range(2)).to(torch.bfloat16)
inputs = [torch.randn(1, 512, WIDTH, dtype=torch.bfloat16) for _ in range(4)]
with torch.inference_mode():
    for i, block in enumerate(blocks):
        inputs = calibrate(block.cuda(), inputs)
        block.cpu()
        print(i, torch.cuda.max_memory_allocated() >> 20, "MiB")
