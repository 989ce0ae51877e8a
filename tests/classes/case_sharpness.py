# SPDX-License-Identifier: Apache-2.0
"""Two passes to a step: weights climb to where the loss is worst, give a gradient there, and get their old values back
by p.data = ..., so that the copy becomes the weight."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet18

import runner
import truth


class Sharpness(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **how):
        super().__init__(params, dict(rho=rho, **how))
        self.base = base(self.param_groups, **how)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        norm = torch.norm(torch.stack([p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]), p=2)
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()


net = resnet18(num_classes=100)
net.fc = nn.Linear(512, 1000)
net = net.cuda()
optimizer = Sharpness(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
truth.model(net)
truth.holds("optimizer_state", "momentum", lambda: list(optimizer.base.state.values()))
truth.holds("optimizer_state", "weights before the climb", lambda: [s.get("old") for s in optimizer.state.values()], or_else=("parameters",))
batches = runner.Batches(lambda: [torch.randn(48, 3, 112, 112).cuda(), torch.zeros(48, dtype=torch.long).cuda()])
for _ in range(3):
    images, labels = batches.next()
    with truth.phase("forward"):
        loss = F.cross_entropy(net(images), labels, label_smoothing=0.1)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.climb()
    truth.mark("climbed")
    with truth.phase("forward"):
        again = F.cross_entropy(net(images), labels, label_smoothing=0.1)
    truth.mark("forward_again")
    with truth.phase("backward"):
        again.backward()
    truth.mark("backward_again")
    with truth.phase("step"):
        optimizer.descend()
    truth.mark("step")
truth.finish()
