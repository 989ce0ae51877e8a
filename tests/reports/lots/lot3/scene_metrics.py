# SPDX-License-Identifier: Apache-2.0
"""Fitting a picture of a scene; its similarity to the photograph is reported with every image."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


def structural_similarity(a, b, c1=0.01 ** 2, c2=0.03 ** 2):
    mean = lambda x: F.avg_pool2d(x, 11, 1, 5)
    ma, mb = mean(a), mean(b)
    va, vb, vab = mean(a * a) - ma ** 2, mean(b * b) - mb ** 2, mean(a * b) - ma * mb
    return ((2 * ma * mb + c1) * (2 * vab + c2) / ((ma ** 2 + mb ** 2 + c1) * (va + vb + c2))).mean()


class Metric(nn.Module):
    """What an epoch needs is collected in forward() until compute() is called."""

    def __init__(self):
        super().__init__()
        self.preds, self.target = [], []

    def update(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def compute(self):
        return structural_similarity(torch.cat(self.preds), torch.cat(self.target))

    def forward(self, preds, target):
        self.update(preds, target)
        return structural_similarity(preds, target)


class Field(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.register_buffer("octaves", 2.0 ** torch.arange(10))
        self.layers = nn.Sequential(nn.Linear(40, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3), nn.Sigmoid())

    def forward(self, rays):
        x = (rays[..., None] * self.octaves).flatten(-2)
        return self.layers(torch.cat([x.sin(), x.cos()], -1))


class Model:
    def __init__(self):
        self.field = Field().cuda()
        self.ssim = structural_similarity if sys.argv[1] == "fixed" else Metric()

    def image(self, size, chunk=1 << 14):
        y, x = torch.meshgrid(*(torch.linspace(0, 1, n, device="cuda") for n in size), indexing="ij")
        rays = torch.stack([x, y], -1).flatten(0, 1)
        return torch.cat([self.field(r) for r in rays.split(chunk)]).view(*size, 3)

    def metrics_and_images(self, photograph):
        with torch.no_grad():
            image = self.image(photograph.shape[:2])
        a, b = (t.permute(2, 0, 1)[None] for t in (image, photograph))
        return {"psnr": -10 * (a - b).square().mean().log10(), "ssim": self.ssim(a, b)}


model = Model()
optimizer = torch.optim.Adam(model.field.parameters(), 1e-3)
for step in range(24):
    rays, colors = torch.rand(1 << 14, 2, device="cuda"), torch.rand(1 << 14, 3, device="cuda")
    loss = F.mse_loss(model.field(rays), colors)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    figures = {k: v.item() for k, v in model.metrics_and_images(torch.rand(720, 960, 3).cuda()).items()}
    if step % 4 == 3:
        print(step, torch.cuda.memory_allocated() >> 20, "MiB")
