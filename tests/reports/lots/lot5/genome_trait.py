# SPDX-License-Identifier: Apache-2.0
"""A trait of maize is predicted from the markers of a genome, cut into k-mers, by an encoder with attention."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

MARKERS, KMERS, DIM = 5120, 4096, 128


class MarkerBlock(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, heads, dropout=0.1, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        h = self.norm1(x)
        if sys.argv[1] == "fixed":
            h, _ = self.attention(h, h, h, need_weights=False)
        else:
            h, _ = self.attention(h, h, h)
        x = x + h
        return x + self.feed(self.norm2(x))


class TraitModel(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Embedding(KMERS, DIM)
        self.position = nn.Parameter(torch.zeros(MARKERS, DIM))
        self.blocks = nn.Sequential(*(MarkerBlock() for _ in range(depth)))
        self.head = nn.Linear(DIM, 1)

    def forward(self, kmers):
        return self.head(self.blocks(self.embed(kmers) + self.position).mean(1)).squeeze(-1)


model = TraitModel().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(5):
    kmers = torch.randint(0, KMERS, (2, MARKERS), device="cuda")
    yield_per_plant = torch.rand(2, device="cuda")
    loss = F.mse_loss(model(kmers), yield_per_plant)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
