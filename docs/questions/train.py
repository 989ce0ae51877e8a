# SPDX-License-Identifier: Apache-2.0
"""The program of these pages: trains a small language model on random words."""
import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--keep-outputs", action="store_true", help="a mistake: keeps the logits of every step for a plot")
parser.add_argument("--any-length", action="store_true", help="batches of different lengths, as those of texts")
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, words, width = x.shape
        q, k, v = self.qkv(x).view(batch, words, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, words, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, vocabulary=32000, width=1024, heads=16, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, words):
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


rank = int(os.environ.get("RANK", "0"))
torch.cuda.set_device(rank)
model = Model().cuda()
if "RANK" in os.environ:
    torch.distributed.init_process_group("nccl")
    if rank == 0:
        average = [p.detach().clone() for p in model.parameters()]  # for evaluation, on this rank only
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
outputs = []
for step in range(args.steps):
    length = 1024 - 120 * (step * 5 % 7) if args.any_length else 1024
    words = torch.randint(0, 32000, (args.batch, length + 1), device="cuda")
    logits = model(words[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.keep_outputs:
        outputs.append(logits)
if "RANK" in os.environ:
    torch.distributed.destroy_process_group()
