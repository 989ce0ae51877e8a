# SPDX-License-Identifier: Apache-2.0
"""The model of the program that test_diff.py changes as a commit would."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        shape = batch, tokens, self.heads, width // self.heads
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2)
        weights = F.softmax(scores / shape[-1] ** 0.5, -1)
        y = weights @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.up(x)
        return self.down(F.gelu(h))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.mlp = Attention(width, heads), MLP(width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Net(nn.Module):
    def __init__(self, words, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
