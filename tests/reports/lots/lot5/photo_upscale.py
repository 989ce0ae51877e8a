# SPDX-License-Identifier: Apache-2.0
"""Photographs of an archive are enlarged four times by a network of residual blocks."""
import sys

import torch
from torch import nn

SCALE = 4


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1))

    def forward(self, x):
        return x + 0.2 * self.body(x)


class Upscaler(nn.Module):
    def __init__(self, width=64, blocks=8):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, 1, 1)
        self.body = nn.Sequential(*(ResidualBlock(width) for _ in range(blocks)))
        self.up = nn.Sequential(nn.Conv2d(width, 4 * width, 3, 1, 1), nn.PixelShuffle(2), nn.LeakyReLU(0.2),
                                nn.Conv2d(width, 4 * width, 3, 1, 1), nn.PixelShuffle(2), nn.LeakyReLU(0.2))
        self.tail = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x):
        x = self.head(x)
        return self.tail(self.up(x + self.body(x)))


def enlarge(model, photo, tile=None, overlap=16):
    if tile is None:
        return model(photo.cuda()).cpu()
    height, width = photo.shape[2:]
    result = torch.zeros(1, 3, height * SCALE, width * SCALE)
    for top in range(0, height, tile):
        for left in range(0, width, tile):
            bottom, right = min(top + tile, height), min(left + tile, width)
            y, x = max(top - overlap, 0), max(left - overlap, 0)
            patch = photo[:, :, y:bottom + overlap, x:right + overlap].cuda()
            large = model(patch).cpu()
            y, x = (top - y) * SCALE, (left - x) * SCALE
            result[:, :, top * SCALE:bottom * SCALE, left * SCALE:right * SCALE] = \
                large[:, :, y:y + (bottom - top) * SCALE, x:x + (right - left) * SCALE]
    return result


model = Upscaler().cuda().eval()
tile = 256 if sys.argv[1] == "fixed" else None
with torch.inference_mode():
    for name, (height, width) in {"harbour": (360, 480), "street": (480, 640), "fair": (640, 960)}.items():
        result = enlarge(model, torch.rand(1, 3, height, width), tile)
        print(name, tuple(result.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
