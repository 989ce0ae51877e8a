# SPDX-License-Identifier: Apache-2.0
"""Optical flow between frames of a film, after RAFT: features are correlated, and the flow is refined in a loop."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

LEVELS, RADIUS = 4, 4


def sample(img, coords):
    h, w = img.shape[-2:]
    x, y = coords.unbind(-1)
    return F.grid_sample(img, torch.stack((2 * x / (w - 1) - 1, 2 * y / (h - 1) - 1), -1), align_corners=True)


def window(device):
    d = torch.linspace(-RADIUS, RADIUS, 2 * RADIUS + 1, device=device)
    return torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)


class CorrBlock:
    def __init__(self, fmap1, fmap2):
        b, c, h, w = fmap1.shape
        corr = fmap1.view(b, c, h * w).transpose(1, 2) @ fmap2.view(b, c, h * w) / c ** 0.5
        corr = corr.view(b * h * w, 1, h, w)
        self.pyramid = [corr]
        for _ in range(LEVELS - 1):
            corr = F.avg_pool2d(corr, 2, stride=2)
            self.pyramid.append(corr)

    def __call__(self, coords):
        b, h, w, _ = coords.shape
        out = []
        for level, corr in enumerate(self.pyramid):
            at = coords.reshape(b * h * w, 1, 1, 2) / 2 ** level + window(coords.device)
            out.append(sample(corr, at).view(b, h, w, -1))
        return torch.cat(out, -1).permute(0, 3, 1, 2)


class LocalCorrBlock:
    def __init__(self, fmap1, fmap2):
        self.fmap1, self.pyramid = fmap1, [fmap2]
        for _ in range(LEVELS - 1):
            self.pyramid.append(F.avg_pool2d(self.pyramid[-1], 2, stride=2))

    def __call__(self, coords):
        out = []
        for level, fmap2 in enumerate(self.pyramid):
            for offset in window(coords.device).view(-1, 2):
                there = sample(fmap2, coords / 2 ** level + offset)
                out.append((self.fmap1 * there).sum(1, keepdim=True) / self.fmap1.shape[1] ** 0.5)
        return torch.cat(out, 1)


class Flow(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.InstanceNorm2d(64), nn.ReLU(),
                                    nn.Conv2d(64, 96, 3, 2, 1), nn.InstanceNorm2d(96), nn.ReLU(), nn.Conv2d(96, width, 3, 2, 1))
        self.motion = nn.Conv2d(LEVELS * (2 * RADIUS + 1) ** 2 + 2, width, 1)
        self.update, self.delta = nn.Conv2d(2 * width, width, 3, padding=1), nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, first, second, iterations=12):
        fmap1, fmap2 = self.encode(first), self.encode(second)
        corr = (LocalCorrBlock if sys.argv[1] == "fixed" else CorrBlock)(fmap1, fmap2)
        b, _, h, w = fmap1.shape
        grid = torch.meshgrid(torch.arange(h, device="cuda"), torch.arange(w, device="cuda"), indexing="ij")
        start = torch.stack(grid[::-1], -1).float().expand(b, h, w, 2)
        coords, hidden = start.clone(), torch.tanh(fmap1)
        for _ in range(iterations):
            motion = self.motion(torch.cat((corr(coords), (coords - start).permute(0, 3, 1, 2)), 1)).relu()
            hidden = torch.tanh(self.update(torch.cat((hidden, motion), 1)))
            coords = coords + self.delta(hidden).permute(0, 2, 3, 1)
        return F.interpolate((coords - start).permute(0, 3, 1, 2), scale_factor=8, mode="bilinear") * 8


model = Flow().cuda().eval()
with torch.no_grad():
    frame = torch.rand(1, 3, 720, 1280).cuda()
    for i in range(3):
        following = torch.rand(1, 3, 720, 1280).cuda()
        print(i, model(frame, following).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
        frame = following
