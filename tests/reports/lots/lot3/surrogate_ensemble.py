# SPDX-License-Identifier: Apache-2.0
"""Rolling out a surrogate of a fluid for several members, started from one trajectory of the data set."""
import sys
from dataclasses import dataclass

import torch
from torch import nn

STRIDE, STEPS, MEMBERS = 1, 12, 8


@dataclass
class Batch:
    input_fields: torch.Tensor
    output_fields: torch.Tensor

    def repeat(self, members):
        return Batch(self.input_fields.repeat_interleave(members, 0), self.output_fields.repeat_interleave(members, 0))

    def clone(self):
        return Batch(self.input_fields.clone(), self.output_fields.clone())


class SpectralBlock(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width)
        self.local = nn.Conv2d(width, width, 1)

    def forward(self, x):
        f = torch.fft.rfft2(x)
        out = torch.zeros_like(f)
        m = self.modes
        out[..., :m, :m] = torch.einsum("bixy,ioxy->boxy", f[..., :m, :m], self.weight)
        return torch.nn.functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.local(x))


class Surrogate(nn.Module):
    def __init__(self, fields=4, width=24):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(fields, width, 1), nn.Conv2d(width, fields, 1)
        self.blocks = nn.ModuleList(SpectralBlock(width, 12) for _ in range(4))

    def forward(self, x):
        h = self.enter(x)
        for block in self.blocks:
            h = h + block(h)
        return x + self.leave(h)


@torch.no_grad()
def rollout(model, batch):
    if sys.argv[1] == "fixed":
        batch = Batch(batch.input_fields, batch.output_fields[:, :STRIDE * STEPS])
    current = batch.repeat(MEMBERS).clone()
    predictions, truths = [], []
    for step in range(STEPS):
        x = model(current.input_fields)
        predictions.append(x)
        truths.append(current.output_fields[:, step * STRIDE])
        current.input_fields = x
    return torch.stack(predictions, 1), torch.stack(truths, 1)


model = Surrogate().cuda().eval()
for trajectory in range(2):
    fields = torch.rand(1, 200, 4, 128, 128)
    batch = Batch(fields[:, 0].cuda(), fields[:, 1:].cuda())
    predicted, truth = rollout(model, batch)
    spread = predicted.std(0).mean()
    print(trajectory, predicted.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
