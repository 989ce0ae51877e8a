# SPDX-License-Identifier: Apache-2.0
"""Elastic weight consolidation: Fisher information is added up in updates and read by the loss; averages of the weights beside it."""
import torch
from torch import nn

import runner
import truth

m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(5)]).cuda()
o = torch.optim.AdamW(m.parameters())
runner.declare(m, o)
ema = {n: p.detach().clone() for n, p in m.named_parameters()}
anchor = {n: p.detach().clone() for n, p in m.named_parameters()}
fisher = {n: torch.zeros_like(p) for n, p in m.named_parameters()}
truth.holds("parameters", "ema", lambda: list(ema.values()), or_else=["optimizer_state"])
truth.holds("parameters", "anchor", lambda: list(anchor.values()), or_else=["optimizer_state", "buffers"])
truth.holds("optimizer_state", "fisher", lambda: list(fisher.values()), or_else=["buffers", "parameters"])
b = runner.Batches(lambda: torch.rand(256, 1024).cuda())
for i in range(4):
    x = b.next()
    with truth.phase("forward"):
        loss = m(x).square().mean()
        for n, p in m.named_parameters():
            loss = loss + (fisher[n] * (p - anchor[n]) ** 2).sum()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    loss = None
    truth.mark("backward")
    with truth.phase("step"), torch.no_grad():
        for n, p in m.named_parameters():
            fisher[n] += p.grad ** 2
        o.step()
        o.zero_grad()
        for n, p in m.named_parameters():
            ema[n].mul_(0.99).add_(p, alpha=0.01)
    truth.mark("step")
truth.finish()
