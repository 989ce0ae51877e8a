# SPDX-License-Identifier: Apache-2.0
"""Embedding the pages of documents with the vision tower of a multimodal model before the language model reads them."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, BATCH = 768, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, 12, 64).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Tower(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, 14, 14)
        self.position = nn.Parameter(torch.zeros(1024, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, pixels):
        x = self.patch(pixels).flatten(2).transpose(1, 2) + self.position
        for layer in self.layers:
            x = layer(x)
        return x


class Multimodal(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = Tower()
        self.queries = nn.Parameter(torch.zeros(64, WIDTH))
        self.resampler = nn.MultiheadAttention(WIDTH, 12, batch_first=True)
        self.language = nn.ModuleList(Layer() for _ in range(4))

    def embed_images(self, slices):
        pixels = torch.stack(slices)
        if sys.argv[1] == "fixed":
            features = torch.cat([self.vision(part) for part in pixels.split(BATCH)])
        else:
            features = self.vision(pixels)
        queries = self.queries.expand(len(pixels), -1, -1)
        return self.resampler(queries, features, features, need_weights=False)[0]

    def forward(self, slices):
        x = self.embed_images(slices).reshape(1, -1, WIDTH)
        for layer in self.language:
            x = layer(x)
        return x[:, -1]


with torch.device("cuda"):
    model = Multimodal().bfloat16().eval()
for document in range(4):
    slices = [torch.rand(3, 448, 448).bfloat16().cuda() for _ in range(16 * (document + 1))]
    with torch.inference_mode():
        out = model(slices)
    print(document, len(slices), out.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
