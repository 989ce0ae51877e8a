# SPDX-License-Identifier: Apache-2.0
"""A relational graph network on a knowledge graph."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
NODES, EDGES, RELATIONS, WIDTH = 20_000, 60_000, 40, 64


class RelGraphConv(nn.Module):
    def __init__(self, n_in, n_out, relations, low_mem=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(relations, n_in, n_out) * 0.02)
        self.loop = nn.Linear(n_in, n_out)
        self.low_mem = low_mem

    def message(self, h, etype, bounds):
        if self.low_mem:
            parts = [h[a:b] @ self.weight[r] for r, (a, b) in enumerate(zip(bounds, bounds[1:]))]
            return torch.cat(parts)
        weight = self.weight.index_select(0, etype)
        return torch.bmm(h.unsqueeze(1), weight).squeeze(1)

    def forward(self, x, src, dst, etype, bounds):
        m = self.message(x[src], etype, bounds)
        out = x.new_zeros(len(x), m.shape[1]).index_add(0, dst, m)
        return torch.relu(out + self.loop(x))


class RGCN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        low = MODE == "fixed"
        self.embed = nn.Embedding(NODES, WIDTH)
        self.conv1 = RelGraphConv(WIDTH, WIDTH, RELATIONS, low)
        self.conv2 = RelGraphConv(WIDTH, WIDTH, RELATIONS, low)
        self.out = nn.Linear(WIDTH, classes)

    def forward(self, src, dst, etype, bounds):
        h = self.embed.weight
        h = self.conv1(h, src, dst, etype, bounds)
        h = self.conv2(h, src, dst, etype, bounds)
        return self.out(h)


def main():
    torch.manual_seed(1)
    src, dst = torch.randint(NODES, (2, EDGES))
    etype = torch.randint(RELATIONS, (EDGES,)).sort().values
    bounds = [0, *torch.bincount(etype, minlength=RELATIONS).cumsum(0).tolist()]
    src, dst, etype = src.cuda(), dst.cuda(), etype.cuda()
    labels = torch.randint(11, (NODES,), device="cuda")
    model = RGCN(11).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        logits = model(src, dst, etype, bounds)
        loss = nn.functional.cross_entropy(logits[:1000], labels[:1000])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
