# SPDX-License-Identifier: Apache-2.0
"""Adam written by hand: moments in lists, made before the first step and replaced by new tensors in each."""
import torch
from torch import nn

import runner
import truth

m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()


class MyAdam:
    def __init__(self, ps, lr=1e-3, b1=.9, b2=.99):
        self.ps = list(ps)
        self.lr, self.b1, self.b2, self.t = lr, b1, b2, 0
        self.m = [torch.zeros_like(p) for p in self.ps]
        self.v = [torch.zeros_like(p) for p in self.ps]

    @torch.no_grad()
    def update(self):
        self.t += 1
        for i, p in enumerate(self.ps):
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * p.grad
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * p.grad ** 2
            p -= self.lr * self.m[i] / (self.v[i].sqrt() + 1e-8)
            p.grad = None


o = MyAdam(m.parameters())
truth.model(m)
truth.holds("optimizer_state", "own", lambda: [o.m, o.v])
b = runner.Batches(lambda: torch.rand(256, 1024).cuda())
for _ in range(4):
    x = b.next()
    with truth.phase("forward"):
        loss = m(x).square().mean()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        o.update()
    truth.mark("step")
truth.finish()
