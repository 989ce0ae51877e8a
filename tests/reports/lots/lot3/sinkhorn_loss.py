# SPDX-License-Identifier: Apache-2.0
"""Learning an encoder whose codes are distributed like a reference set, by the entropic transport cost between the two."""
import math
import sys

import torch
from torch import nn

POINTS, ITERATIONS = 1536, 60


def dist(x, y):
    return ((x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * x @ y.T).clamp(min=0)


def sinkhorn_log(a, b, cost, reg, iterations):
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(iterations):
        f = reg * (a.log() - torch.logsumexp((g[None, :] - cost) / reg, dim=1))
        g = reg * (b.log() - torch.logsumexp((f[:, None] - cost) / reg, dim=0))
    return torch.exp((f[:, None] + g[None, :] - cost) / reg)


def sinkhorn2(a, b, cost, reg=0.05):
    if sys.argv[1] == "fixed":
        with torch.no_grad():
            plan = sinkhorn_log(a, b, cost, reg, ITERATIONS)
        return (plan * cost).sum()
    return (sinkhorn_log(a, b, cost, reg, ITERATIONS) * cost).sum()


class Encoder(nn.Module):
    def __init__(self, genes=2000, width=256, code=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(genes, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, code))
        self.back = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, genes))

    def forward(self, x):
        code = self.net(x)
        return code, self.back(code)


def train_epoch(model, optimizer, batches):
    uniform = torch.full((POINTS,), math.exp(-math.log(POINTS)), device="cuda")
    for x in batches:
        x = x.cuda(non_blocking=True)
        code, back = model(x)
        cost = dist(code, torch.randn(POINTS, code.shape[1], device="cuda"))
        loss = (back - x).square().mean() + 0.1 * sinkhorn2(uniform, uniform, cost / cost.detach().max())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = Encoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    train_epoch(model, optimizer, (torch.rand(POINTS, 2000) for _ in range(2)))
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
