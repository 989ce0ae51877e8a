# SPDX-License-Identifier: Apache-2.0
"""L-BFGS: forward and backward run inside the optimizer's step, and its state is a history of whole vectors."""
import torch
from torch import nn

import runner
import truth

model = nn.Sequential(nn.Linear(1000, 2000), nn.Tanh(), nn.Linear(2000, 1000), nn.Tanh(), nn.Linear(1000, 10)).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2, history_size=4)
runner.declare(model, optimizer)
batches = runner.Batches(lambda: torch.randn(3000, 1000).cuda())


def closure():
    optimizer.zero_grad()
    with truth.phase("forward"):
        loss = model(x).square().mean()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    return loss


for _ in range(3):
    x = batches.next()
    with truth.phase("step"):
        optimizer.step(closure)
    truth.mark("step")
truth.finish()
