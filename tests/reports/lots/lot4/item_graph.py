# SPDX-License-Identifier: Apache-2.0
"""Items are recommended by what others chose with them: each item has a vector, which is learned, and sees those of its neighbours."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

ITEMS, WIDTH, NEIGHBOURS, BATCH = 700000, 128, 10, 512


class SAGE(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.gather, self.join = nn.Linear(width, width), nn.Linear(2 * width, width)

    def forward(self, item, neighbours):
        seen = self.gather(neighbours).relu().mean(1)
        return F.normalize(self.join(torch.cat((item, seen), -1)), dim=-1)


class PinSAGE(nn.Module):
    def __init__(self, embed=None):
        super().__init__()
        if embed is None:
            self.embed = nn.Embedding(ITEMS, WIDTH)
        self.sage = SAGE()

    def represent(self, items, neighbours, table):
        item, around = table(items), table(neighbours)
        return self.sage(item.cuda(), around.cuda())


def margin_loss(model, table, batch):
    head, tail, negative = (model.represent(items, neighbours, table) for items, neighbours in batch)
    return (1 + (head * negative).sum(-1) - (head * tail).sum(-1)).clamp(min=0).mean()


if sys.argv[1] == "fixed":
    table = nn.Embedding(ITEMS, WIDTH, sparse=True)
    model = PinSAGE(table).cuda()
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-4), torch.optim.SparseAdam(table.parameters(), lr=1e-4)]
else:
    model = PinSAGE().cuda()
    table = model.embed
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-4)]
device = table.weight.device
for step in range(5):
    batch = [(torch.randint(0, ITEMS, (BATCH,), device=device), torch.randint(0, ITEMS, (BATCH, NEIGHBOURS), device=device)) for _ in range(3)]
    loss = margin_loss(model, table, batch)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
