# SPDX-License-Identifier: Apache-2.0
"""Missing links of a social network are predicted by a graph autoencoder: known edges against pairs without an edge."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

PEOPLE, EDGES, FEATURES, DIM = 36000, 120000, 64, 32


class GCNConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, self.linear(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(FEATURES, 2 * DIM), GCNConv(2 * DIM, DIM)

    def forward(self, x, adjacency):
        return self.conv2(self.conv1(x, adjacency).relu(), adjacency)


class LinkSampler:
    """Random pairs of people, and which of them have no edge."""

    def __init__(self, edge_index):
        row, col = edge_index
        if sys.argv[1] == "fixed":
            self.known = (row * PEOPLE + col).sort().values
        else:
            self.adjacency = torch.zeros(PEOPLE, PEOPLE, dtype=torch.uint8, device=edge_index.device)
            self.adjacency[row, col] = 1
            self.free = (1 - self.adjacency).triu(diagonal=1).bool()

    def sample(self, count):
        row, col = torch.randint(0, PEOPLE, (2, count), device="cuda").sort(0).values
        if sys.argv[1] == "fixed":
            pair = row * PEOPLE + col
            place = torch.searchsorted(self.known, pair).clamp(max=len(self.known) - 1)
            return row, col, (self.known[place] != pair) & (row != col)
        return row, col, self.free[row, col]


def decode(z, row, col):
    return (z[row] * z[col]).sum(-1)


edge_index = torch.randint(0, PEOPLE, (2, EDGES)).sort(0).values.cuda()
x = torch.rand(PEOPLE, FEATURES, device="cuda")
both = torch.cat([edge_index, edge_index.flip(0)], 1)
adjacency = torch.sparse_coo_tensor(both, torch.full((2 * EDGES,), 0.1, device="cuda"), (PEOPLE, PEOPLE))
sampler = LinkSampler(edge_index)
model = Encoder().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    z = model(x, adjacency)
    row, col, free = sampler.sample(EDGES)
    positive = -F.logsigmoid(decode(z, *edge_index)).mean()
    negative = (-F.logsigmoid(-decode(z, row, col)) * free).sum() / free.sum().clamp(min=1)
    loss = positive + negative
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
