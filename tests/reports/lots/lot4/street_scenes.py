# SPDX-License-Identifier: Apache-2.0
"""Segmentation of street scenes; the hue of the pictures is changed at random on the device before each step."""
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn


def rgb2hsv(img):
    r, g, b = img.unbind(dim=-3)
    maxc, minc = torch.max(img, dim=-3).values, torch.min(img, dim=-3).values
    eqc = maxc == minc
    cr = maxc - minc
    ones = torch.ones_like(maxc)
    s = cr / torch.where(eqc, ones, maxc)
    divisor = torch.where(eqc, ones, cr)
    rc, gc, bc = (maxc - r) / divisor, (maxc - g) / divisor, (maxc - b) / divisor
    hr = (maxc == r) * (bc - gc)
    hg = ((maxc == g) & (maxc != r)) * (2.0 + rc - bc)
    hb = ((maxc != g) & (maxc != r)) * (4.0 + gc - rc)
    h = torch.fmod((hr + hg + hb) / 6.0 + 1.0, 1.0)
    return torch.stack((h, s, maxc), dim=-3)


def hsv2rgb(img):
    h, s, v = img.unbind(dim=-3)
    i = torch.floor(h * 6.0)
    f = h * 6.0 - i
    i = i.to(dtype=torch.int32) % 6
    p = (v * (1.0 - s)).clamp(0.0, 1.0)
    q = (v * (1.0 - s * f)).clamp(0.0, 1.0)
    t = (v * (1.0 - s * (1.0 - f))).clamp(0.0, 1.0)
    if sys.argv[1] == "fixed":
        choices = torch.stack((v, q, p, t), dim=-3)
        table = torch.tensor([[0, 1, 2, 2, 3, 0], [3, 0, 0, 1, 2, 2], [2, 2, 3, 0, 0, 1]], device=img.device)
        return torch.cat([choices.gather(-3, row[i].unsqueeze(-3)) for row in table], dim=-3)
    mask = i.unsqueeze(dim=-3) == torch.arange(6, device=i.device).view(-1, 1, 1)
    a1 = torch.stack((v, q, p, p, t, v), dim=-3)
    a2 = torch.stack((t, v, v, q, p, p), dim=-3)
    a3 = torch.stack((p, p, t, v, v, q), dim=-3)
    a4 = torch.stack((a1, a2, a3), dim=-4)
    return torch.einsum("...ijk, ...xijk -> ...xjk", mask.to(dtype=img.dtype), a4)


def adjust_hue(img, factor):
    img = rgb2hsv(img)
    h, s, v = img.unbind(dim=-3)
    return hsv2rgb(torch.stack(((h + factor) % 1.0, s, v), dim=-3))


class Segmenter(nn.Module):
    def __init__(self, classes=19, width=32):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 7, 4, 3), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.classify = nn.Conv2d(2 * width, classes, 1)

    def forward(self, x):
        return self.classify(self.down(x))


model = Segmenter().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(3):
    images = torch.rand(16, 3, 704, 1024).cuda()
    labels = torch.randint(0, 19, (16, 88, 128)).cuda()
    with torch.no_grad():
        images = adjust_hue(images, random.uniform(-0.1, 0.1))
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
