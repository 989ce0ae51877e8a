# SPDX-License-Identifier: Apache-2.0
"""Training steps of a small transformer. With COUNT_LIBRARY the events of the last step are counted by it."""
import ctypes
import os

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).chunk(3, dim=-1)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def step(model, optimizer):
    tokens = torch.randint(0, 1000, (4, 64), device="cuda")
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    with torch.device("cuda"):
        model = Model(256, 12)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(40):
        step(model, optimizer)
    if "COUNT_LIBRARY" in os.environ:
        count = ctypes.CDLL(os.environ["COUNT_LIBRARY"])
        count.count_start()
        step(model, optimizer)
        count.count_stop()


main()
