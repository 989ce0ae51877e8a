# SPDX-License-Identifier: Apache-2.0
"""Averaged weights with their norms recomputed, mixed images, RAdam, a backward hook that scales gradients, bf16 weights of a
convolutional network, best weights kept in a dictionary."""
import copy

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import convnext_tiny

import runner
import truth

net = convnext_tiny(num_classes=50).to("cuda", dtype=torch.bfloat16)
for p in net.parameters():
    p.register_hook(lambda g: g * 0.5)
optimizer = torch.optim.RAdam(net.parameters(), lr=1e-3)
runner.declare(net, optimizer)
swa = torch.optim.swa_utils.AveragedModel(net)
truth.holds("parameters", "averaged model", lambda: list(swa.parameters()), or_else=["optimizer_state"])
truth.holds("buffers", "its buffers", lambda: list(swa.buffers()))
best = [None]
truth.holds("parameters", "best weights", lambda: [best[0]] if best[0] else [], or_else=["optimizer_state", "buffers"])
loader = [(torch.randn(16, 3, 96, 96), torch.arange(16)) for _ in range(3)]
batch = []
truth.holds("inputs", "the batch", lambda: batch)
for x, y in loader:
    with truth.phase("data"):
        x, y = x.to("cuda", torch.bfloat16), y.to("cuda")
        order = torch.randperm(len(x), device="cuda")
        mixed = 0.7 * x + 0.3 * x[order]
    batch[:] = [x, y, order, mixed]
    with truth.phase("forward"):
        out = net(mixed)
        loss = 0.7 * F.cross_entropy(out, y) + 0.3 * F.cross_entropy(out, y[order])
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    optimizer.zero_grad()
    swa.update_parameters(net)
    best[0] = copy.deepcopy(net.state_dict())
    truth.mark("kept")
with truth.phase("forward"):
    torch.optim.swa_utils.update_bn([x.to("cuda", torch.bfloat16) for x, _ in loader], swa)
truth.mark("updated")
truth.finish()
