# SPDX-License-Identifier: Apache-2.0
"""A layer is frozen and its state dropped; later it is trained again with the state from the host."""
import torch
from torch import nn

import runner
import truth

m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
o = torch.optim.Adam(m.parameters())
runner.declare(m, o)
b = runner.Batches(lambda: torch.rand(256, 1024).cuda())
host = {}


def step():
    x = b.next()
    with truth.phase("forward"):
        loss = m(x).square().mean()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()
    truth.mark("step")


for _ in range(2):
    step()
for p in m[3].parameters():
    host[p] = {k: v.cpu() for k, v in o.state.pop(p).items()}
    p.requires_grad_(False)
for _ in range(2):
    step()
with truth.phase("step"):
    for p, s in host.items():
        p.requires_grad_(True)
        o.state[p] = {k: (v.cuda() if v.dim() else v) for k, v in s.items()}
for _ in range(3):
    step()
truth.finish()
