# SPDX-License-Identifier: Apache-2.0
"""A weather model is validated: the processor of a trained model runs under autocast for some steps, without gradients."""
import sys

import torch
from torch import nn

GRID, VARIABLES, WIDTH = 2048, 80, 2048


class Block(nn.Module):
    def __init__(self, width, heads=16):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.project = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        x = x + self.project(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, layers=12):
        super().__init__()
        self.encode, self.decode = nn.Linear(2 * VARIABLES, WIDTH), nn.Linear(WIDTH, VARIABLES)
        self.processor = nn.ModuleList(Block(WIDTH) for _ in range(layers))

    def forward(self, x):
        h = self.encode(x)
        for block in self.processor:
            h = block(h)
        return self.decode(h)


@torch.no_grad()
def validate(model, state, steps=4):
    errors = []
    for _ in range(steps):
        with torch.autocast("cuda", dtype=torch.float16, cache_enabled=sys.argv[1] != "fixed"):
            predicted = model(state)
        errors.append(float((predicted.float() - state[..., VARIABLES:]).pow(2).mean()))
        state = torch.cat((state[..., VARIABLES:], predicted.float()), -1)
    return errors


with torch.device("cuda"):
    model = Forecaster().eval()
for case in range(2):
    errors = validate(model, torch.rand(1, GRID, 2 * VARIABLES, device="cuda"))
    print(case, len(errors), torch.cuda.max_memory_allocated() >> 20, "MiB")
