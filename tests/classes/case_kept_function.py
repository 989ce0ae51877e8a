# SPDX-License-Identifier: Apache-2.0
"""Results of Functions of one's own that lists and variables keep: after their backward pass, and with a graph that is dropped
without one; a compiled model's results too."""
import torch
from torch import nn

import runner
import truth


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * torch.sigmoid(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * (y + torch.sigmoid(x) * (1 - y))


class Net(nn.Module):
    def __init__(self, width=2048, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        seen = []
        for layer in self.layers:
            x = Swish.apply(layer(x))
            seen.append(x)
        return x, seen


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.mark_inside_backward(model.layers[2])
batches = runner.Batches(lambda: torch.randn(2048, 2048, device="cuda"))
kept = []
for _ in range(3):
    x = batches.next()
    with truth.phase("forward"):
        y, seen = model(x)
        loss = y.square().mean()
    truth.mark("forward")
    kept.append(y)
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    optimizer.zero_grad()
    with truth.phase("forward"):
        y, seen = model(x)
    kept += [t.detach() for t in seen[:2]]
    truth.mark("evaluated")
    y = seen = None
    truth.mark("dropped")
truth.finish()
