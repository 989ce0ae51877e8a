# SPDX-License-Identifier: Apache-2.0
"""Learning to learn: the inner step keeps its graph and makes fast weights, the outer one goes back through both."""
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

import runner
import truth

net = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1), nn.BatchNorm2d(64, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(64 * 49, 512), nn.ReLU(), nn.Linear(512, 20)).cuda()
meta = torch.optim.Adam(net.parameters())
runner.declare(net, meta)
tasks = runner.Batches(lambda: [torch.randn(80, 1, 28, 28).cuda(), torch.zeros(80, dtype=torch.long).cuda(),
                                torch.randn(80, 1, 28, 28).cuda(), torch.zeros(80, dtype=torch.long).cuda()])
for _ in range(3):
    meta.zero_grad()
    for _ in range(2):
        x, y, qx, qy = tasks.next()
        fast = dict(net.named_parameters())
        for _ in range(2):
            with truth.phase("forward"):
                loss = F.cross_entropy(functional_call(net, fast, (x,)), y)
            with truth.phase("backward"):
                grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            with truth.phase("forward"):
                fast = {k: p - 0.01 * g for (k, p), g in zip(fast.items(), grads)}
        with truth.phase("forward"):
            loss = F.cross_entropy(functional_call(net, fast, (qx,)), qy)
        truth.mark("forward")
        with truth.phase("backward"):
            (loss / 2).backward()
        truth.mark("backward")
    with truth.phase("step"):
        meta.step()
    truth.mark("step")
truth.finish()
