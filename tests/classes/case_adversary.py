# SPDX-License-Identifier: Apache-2.0
"""Adversarial training: images are attacked by several passes of their own before the weights see them."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import mobilenet_v2

import runner
import truth

model = mobilenet_v2(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
runner.declare(model, optimizer)
batches = runner.Batches(lambda: (torch.rand(48, 3, 96, 96).cuda(), torch.zeros(48, dtype=torch.long).cuda()))
attacked = []
truth.holds("inputs", "attacked images", lambda: attacked, or_else=["parameters"])


def attack(x, y, steps=2, alpha=2 / 255, eps=8 / 255):
    with truth.phase("data"):
        adv = x.detach() + torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        adv.requires_grad_()
        with truth.phase("forward"):
            loss = F.cross_entropy(model(adv), y)
        attacked[:] = [adv]
        truth.mark("attack")
        with truth.phase("backward"):
            grad = torch.autograd.grad(loss, [adv])[0]
        with truth.phase("data"):
            adv = adv.detach() + alpha * torch.sign(grad.detach())
            adv = torch.clamp(torch.min(torch.max(adv, x - eps), x + eps), 0, 1)
    attacked[:] = [adv]
    return adv


for _ in range(3):
    x, y = batches.next()
    model.eval()
    x = attack(x, y)
    model.train()
    with truth.phase("forward"):
        loss = F.cross_entropy(model(x), y)
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.finish()
