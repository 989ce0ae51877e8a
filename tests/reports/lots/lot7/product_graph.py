# SPDX-License-Identifier: Apache-2.0
"""Products of a shop are classified with GraphSAGE: sampled neighbors in training, one layer after the other for all nodes in the test."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

NODES, FEATURES, HIDDEN, CLASSES, FANOUT, DEGREE, BATCH = 120_000, 100, 256, 47, (8, 5), 8, 256


class Graph:
    def __init__(self):
        self.neighbors = torch.randint(0, NODES, (NODES, DEGREE))
        self.features, self.labels = torch.rand(NODES, FEATURES), torch.randint(0, CLASSES, (NODES,))

    def sample(self, nodes, fanout):
        picked = self.neighbors[nodes][:, :fanout]
        input_nodes, inverse = torch.unique(torch.cat([nodes, picked.flatten()]), return_inverse=True)
        return input_nodes, inverse[:len(nodes)], inverse[len(nodes):].view(len(nodes), -1)


class SAGEConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc_self, self.fc_neigh = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, dst, src):
        return self.fc_self(x[dst]) + self.fc_neigh(x[src].mean(1))


class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, HIDDEN), SAGEConv(HIDDEN, CLASSES)])

    def forward(self, blocks, x):
        for layer, (dst, src) in zip(self.layers, blocks):
            x = layer(x, dst, src)
            if layer is not self.layers[-1]:
                x = F.dropout(F.relu(x), 0.5, self.training)
        return x

    @torch.no_grad()
    def inference(self, graph, device):
        feature = graph.features
        for layer in self.layers:
            y = torch.empty(NODES, layer.fc_self.out_features)
            if sys.argv[1] != "fixed":
                feature = feature.to(device)
            for output_nodes in torch.arange(NODES).split(16 * BATCH):
                input_nodes, dst, src = graph.sample(output_nodes, DEGREE)
                x = feature[input_nodes.to(feature.device)].to(device)
                h = layer(x, dst.to(device), src.to(device))
                y[output_nodes] = (h if layer is self.layers[-1] else F.relu(h)).cpu()
            feature = y
        return y


graph, device = Graph(), torch.device("cuda")
model = SAGE().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(8):
    nodes, blocks = torch.randint(0, NODES, (BATCH,)).unique(), []
    seeds = nodes
    for fanout in (5, *reversed(FANOUT)):
        nodes, dst, src = graph.sample(nodes, fanout)
        blocks.insert(0, (dst.to(device), src.to(device)))
    loss = F.cross_entropy(model(blocks, graph.features[nodes].to(device)), graph.labels[seeds].to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
model.eval()
accuracy = (model.inference(graph, device).argmax(1) == graph.labels).float().mean()
print("accuracy", accuracy.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
