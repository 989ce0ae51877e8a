# SPDX-License-Identifier: Apache-2.0
"""Graph attention on a citation network, all nodes at once with a dense adjacency matrix."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

NODES, FEATURES, CLASSES, HEADS, WIDTH = 1400, 1433, 7, 4, 8


class GraphAttention(nn.Module):
    def __init__(self, ins, outs, concat=True):
        super().__init__()
        self.outs, self.concat = outs, concat
        self.weight = nn.Parameter(torch.empty(ins, outs))
        self.a = nn.Parameter(torch.empty(2 * outs, 1))
        nn.init.xavier_uniform_(self.weight)
        nn.init.xavier_uniform_(self.a)

    def scores(self, h):
        if sys.argv[1] == "fixed":
            return F.leaky_relu(h @ self.a[:self.outs] + (h @ self.a[self.outs:]).T, 0.2)
        n = len(h)
        left, right = h.repeat_interleave(n, dim=0), h.repeat(n, 1)
        pairs = torch.cat([left, right], dim=1).view(n, n, 2 * self.outs)
        return F.leaky_relu(torch.matmul(pairs, self.a).squeeze(2), 0.2)

    def forward(self, x, adjacency):
        h = torch.mm(x, self.weight)
        e = self.scores(h)
        attention = torch.where(adjacency > 0, e, torch.full_like(e, -9e15))
        attention = F.dropout(F.softmax(attention, dim=1), 0.6, self.training)
        out = torch.matmul(attention, h)
        return F.elu(out) if self.concat else out


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(GraphAttention(FEATURES, WIDTH) for _ in range(HEADS))
        self.last = GraphAttention(HEADS * WIDTH, CLASSES, concat=False)

    def forward(self, x, adjacency):
        x = F.dropout(x, 0.6, self.training)
        x = torch.cat([head(x, adjacency) for head in self.heads], dim=1)
        return F.log_softmax(self.last(F.dropout(x, 0.6, self.training), adjacency), dim=1)


features = torch.rand(NODES, FEATURES).cuda()
adjacency = ((torch.rand(NODES, NODES) < 0.002) | torch.eye(NODES, dtype=torch.bool)).float().cuda()
labels = torch.randint(0, CLASSES, (NODES,)).cuda()
model = GAT().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
for epoch in range(4):
    loss = F.nll_loss(model(features, adjacency)[:140], labels[:140])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
