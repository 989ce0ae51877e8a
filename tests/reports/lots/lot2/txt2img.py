# SPDX-License-Identifier: Apache-2.0
"""Sampling a batch of pictures with a latent diffusion model, and decoding them."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

SPLIT = sys.argv[1] == "fixed"


class Block(nn.Module):
    def __init__(self, ins, outs):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, ins), nn.Conv2d(ins, outs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, outs), nn.Conv2d(outs, outs, 3, padding=1)
        self.skip = nn.Conv2d(ins, outs, 1) if ins != outs else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Unet(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.blocks = nn.ModuleList(Block(width, width) for _ in range(6))
        self.leave = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x, t):
        h = self.enter(x) * (1 + t)
        for block in self.blocks:
            h = block(h)
        return self.leave(h)


class Decoder(nn.Module):
    def __init__(self, widths=(256, 256, 128, 64)):
        super().__init__()
        self.enter = nn.Conv2d(4, widths[0], 3, padding=1)
        self.stages = nn.ModuleList(Block(a, b) for a, b in zip(widths, widths[1:] + widths[-1:]))
        self.leave = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, z):
        h = self.enter(z / 0.18215)
        for i, stage in enumerate(self.stages):
            h = stage(h)
            if i < 3:
                h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.leave(h)


@torch.no_grad()
def sample(unet, count, steps=10):
    x = torch.randn(count, 4, 64, 64, device="cuda", dtype=torch.half)
    for t in torch.linspace(1, 0, steps).tolist():
        x = x - unet(x, t) / steps
    return x


@torch.no_grad()
def pictures(decoder, latents):
    if SPLIT:
        x = torch.cat([decoder(latents[i:i + 1]) for i in range(len(latents))])
    else:
        x = decoder(latents)
    x = torch.clamp((x + 1.0) / 2.0, min=0.0, max=1.0)
    return [(255.0 * p.float().cpu()).byte() for p in x]


with torch.device("cuda"):
    unet, decoder = Unet().half().eval(), Decoder().half().eval()
for batch in range(3):
    images = pictures(decoder, sample(unet, 24))
    print(batch, len(images), images[0].shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
