# SPDX-License-Identifier: Apache-2.0
"""Documents and words are the nodes of one large graph, and a graph convolution classifies the documents."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

NODES, EDGES, HIDDEN, CLASSES = 14049, 1500000, 200, 20


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        nn.init.xavier_uniform_(self.weight)

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j

    def forward(self, x, edge_index, norm):
        x = self.weight if x is None else x @ self.weight
        if sys.argv[1] == "fixed":
            adjacency = torch.sparse_coo_tensor(edge_index.flip(0), norm, (NODES, NODES))
            return torch.sparse.mm(adjacency, x)
        source, target = edge_index
        messages = self.message(x.index_select(0, source), norm)
        return torch.zeros(NODES, x.shape[1], device=x.device).index_add(0, target, messages)


class TextGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GraphConv(NODES, HIDDEN), GraphConv(HIDDEN, CLASSES)

    def forward(self, edge_index, norm):
        h = F.dropout(self.conv1(None, edge_index, norm).relu(), 0.5, self.training)
        return self.conv2(h, edge_index, norm)


edge_index = torch.randint(0, NODES, (2, EDGES))
degree = torch.zeros(NODES).scatter_add_(0, edge_index[1], torch.ones(EDGES)).clamp(min=1)
norm = (degree[edge_index[0]] * degree[edge_index[1]]).rsqrt()
edge_index, norm = edge_index.cuda(), norm.cuda()
labels = torch.randint(0, CLASSES, (NODES,), device="cuda")
model = TextGCN().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(5):
    loss = F.cross_entropy(model(edge_index, norm)[:10000], labels[:10000])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
