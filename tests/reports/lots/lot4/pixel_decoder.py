# SPDX-License-Identifier: Apache-2.0
"""A service paints pictures in whatever size a request asks for, with a transformer over pixels' patches."""
import random
import sys
from collections import OrderedDict

import torch
from torch import nn

WIDTH, PATCH = 768, 16


def sincos(width, positions):
    omega = 1.0 / 10000 ** (torch.arange(width // 2, dtype=torch.float32) / (width // 2))
    angles = positions.reshape(-1)[:, None] * omega
    return torch.cat((angles.sin(), angles.cos()), 1)


class PixelTransformer(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.enter, self.leave = nn.Linear(3 * PATCH ** 2, WIDTH), nn.Linear(WIDTH, 3 * PATCH ** 2)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, batch_first=True) for _ in range(layers))
        self._pos_cache = OrderedDict()

    def fetch_pos(self, height, width, device, dtype):
        key = height, width
        if key not in self._pos_cache:
            grid = torch.meshgrid(torch.arange(height, dtype=torch.float32), torch.arange(width, dtype=torch.float32), indexing="ij")
            pos = torch.cat([sincos(WIDTH // 2, g) for g in grid], 1).to(device=device, dtype=dtype)
            self._pos_cache[key] = pos
            if sys.argv[1] == "fixed" and len(self._pos_cache) > 8:
                self._pos_cache.popitem(last=False)
        return self._pos_cache[key]

    def forward(self, image):
        b, _, h, w = image.shape
        x = image.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).permute(0, 2, 3, 1, 4, 5).reshape(b, -1, 3 * PATCH ** 2)
        x = self.enter(x) + self.fetch_pos(h // PATCH, w // PATCH, x.device, x.dtype)
        for layer in self.layers:
            x = layer(x)
        x = self.leave(x).view(b, h // PATCH, w // PATCH, 3, PATCH, PATCH)
        return x.permute(0, 3, 1, 4, 2, 5).reshape(b, 3, h, w)


class Service:
    def __init__(self):
        self.model = PixelTransformer().half().cuda().eval()

    @torch.inference_mode()
    def paint(self, height, width, steps=2):
        image = torch.randn(1, 3, height, width, device="cuda", dtype=torch.float16)
        for _ in range(steps):
            image = image - 0.5 * self.model(image)
        return image.clamp(-1, 1).cpu()


service, sizes = Service(), random.Random(5)
for request in range(60):
    height, width = (sizes.randrange(512, 1537, PATCH) for _ in range(2))
    picture = service.paint(height, width)
    if request % 10 == 9:
        print(request + 1, tuple(picture.shape), torch.cuda.memory_allocated() >> 20, "MiB")
