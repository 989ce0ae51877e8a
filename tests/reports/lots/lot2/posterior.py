# SPDX-License-Identifier: Apache-2.0
"""Sampling for an inverse problem: a diffusion prior proposes, and Langevin steps pull the sample to the measurement."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

CLEAN = sys.argv[1] == "fixed"


class Prior(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU(),
                                 nn.Conv2d(width, 3, 3, padding=1))

    @torch.no_grad()
    def forward(self, x, sigma):
        return x - sigma * self.net(x / (1 + sigma))


class Inpainting:
    def __init__(self, mask):
        self.mask = mask

    def gradient(self, x, y):
        residual = (x.detach() * self.mask - y) * self.mask
        return residual, residual.square().mean()


class Langevin:
    def __init__(self, steps=20, lr=1e-4, tau=0.01):
        self.steps, self.lr, self.tau = steps, lr, tau

    def sample(self, x0hat, operator, y, sigma):
        x = x0hat.clone().detach().requires_grad_(True)
        optimizer = torch.optim.SGD([x], lr=self.lr)
        for _ in range(self.steps):
            optimizer.zero_grad()
            gradient, loss = operator.gradient(x, y)
            gradient = gradient / (2 * self.tau ** 2)
            if CLEAN:
                gradient = gradient + (x.detach() - x0hat) / sigma ** 2
            else:
                gradient = gradient + (x - x0hat) / sigma ** 2
            x.grad = gradient.detach() if CLEAN else gradient
            optimizer.step()
            with torch.no_grad():
                x.data += (2 * self.lr) ** 0.5 * torch.randn_like(x)
        if CLEAN:
            x.grad = None
        return x.detach()


prior, langevin = Prior().cuda().eval(), Langevin()
truth = torch.rand(6, 3, 512, 512, device="cuda")
operator = Inpainting((torch.rand(6, 1, 512, 512, device="cuda") > 0.5).float())
y = truth * operator.mask
x = torch.randn_like(truth) * 20
sigmas = torch.logspace(1.3, -1, 24).tolist()
for i, sigma in enumerate(sigmas):
    x0hat = prior(x, sigma)
    x0y = langevin.sample(x0hat, operator, y, sigma)
    x = x0y + torch.randn_like(x0y) * sigma
    if i % 6 == 5:
        print(i, torch.cuda.memory_allocated() >> 20, "MiB")
