# SPDX-License-Identifier: Apache-2.0
"""leaks.py CASE TRUTH: eight steps of training that keep something they should not, and what PyTorch counts after
each."""
import collections
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 8
counts = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(96, 384), nn.Linear(384, 96)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def train(each, batch=lambda step: 64):
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        x = torch.randn(batch(step), 96, device="cuda")
        y = model(x)
        loss = y.square().mean()
        loss.backward(retain_graph=each is keep_graph)
        optimizer.step()
        optimizer.zero_grad()
        each(model, x, y, loss)
        counts.append(torch.cuda.memory_allocated())


losses, outputs, logged, recent = [], [], [], collections.deque(maxlen=3)
grown = [None]


def nothing(model, x, y, loss):
    pass


def keep_graph(model, x, y, loss):
    losses.append(loss)


def keep_outputs(model, x, y, loss):
    outputs.append(y.detach())


def keep_now_and_then(model, x, y, loss):
    """As once in an epoch of two steps."""
    if len(counts) % 2:
        outputs.append(y.detach())


def keep_two(model, x, y, loss):
    outputs.append(y.detach())
    logged.append(torch.ones(5000, device="cuda"))


def keep_some(model, x, y, loss):
    recent.append(y.detach())


def grow(model, x, y, loss):
    grown[0] = x if grown[0] is None else torch.cat([grown[0], x])


def varying(model, x, y, loss):
    outputs.append(torch.zeros(3000, device="cuda"))


CASES = {"nothing": (nothing,), "graph": (keep_graph,), "outputs": (keep_outputs,), "two": (keep_two,),
         "now_and_then": (keep_now_and_then,),
         "recent": (keep_some,), "grow": (grow,),
         "longer": (nothing, lambda step: 64 * (step + 1)),
         "varying": (varying, lambda step: [64, 80, 16, 48, 96, 32, 112, 40][step])}

train(*CASES[sys.argv[1]])
with open(sys.argv[2], "w") as f:
    json.dump(counts, f)
