# SPDX-License-Identifier: Apache-2.0
"""Papers of a citation network are classified; batches are parts of the graph that neighbours are sampled for."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES = 128, 128, 40
BATCHES = [(9_000, 40_000), (10_000, 50_000), (16_000, 60_000), (12_000, 50_000)]


def to_dense_adj(edge_index, num_nodes):
    adjacency = torch.zeros(num_nodes * num_nodes, device=edge_index.device)
    adjacency.scatter_add_(0, edge_index[0] * num_nodes + edge_index[1], torch.ones(edge_index.shape[1], device=edge_index.device))
    return adjacency.view(num_nodes, num_nodes)


def degree(index, num_nodes):
    return torch.zeros(num_nodes, device=index.device).scatter_add_(0, index, torch.ones(len(index), device=index.device))


class DegreeConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin, self.root = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, x, edge_index, deg):
        source, target = edge_index
        message = self.lin(x)[source] * deg[source].clamp(min=1).rsqrt().unsqueeze(1)
        out = torch.zeros(len(x), message.shape[1], device=x.device).index_add_(0, target, message)
        return out / deg.clamp(min=1).sqrt().unsqueeze(1) + self.root(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = DegreeConv(FEATURES, WIDTH), DegreeConv(WIDTH, WIDTH)
        self.bucket, self.out = nn.Embedding(64, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        if sys.argv[1] == "fixed":
            deg = degree(edge_index[0], len(x))
        else:
            deg = to_dense_adj(edge_index, len(x)).sum(dim=1)
        x = F.relu(self.conv1(x, edge_index, deg)) + self.bucket(deg.long().clamp(0, 63))
        x = F.relu(self.conv2(x, edge_index, deg))
        return self.out(x)


model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for nodes, edges in BATCHES:
        x, edge_index = torch.randn(nodes, FEATURES).cuda(), torch.randint(0, nodes, (2, edges)).cuda()
        labels = torch.randint(0, CLASSES, (nodes,)).cuda()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[:1024], labels[:1024])
        loss.backward()
        optimizer.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
