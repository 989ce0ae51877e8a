# SPDX-License-Identifier: Apache-2.0
"""A graph network over all edges at once. A callback records from setup on and writes at teardown, after the error has gone through fit."""
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


class CUDAMemorySnapshotCallback:
    def __init__(self, save_path):
        self.save_path = save_path

    def setup(self):
        torch.cuda.memory._record_memory_history()

    def teardown(self):
        torch.cuda.memory._dump_snapshot(os.path.join(self.save_path, "memory_snapshot.pickle"))


class Conv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, links, adjacency):
        if FIXED:
            near = torch.sparse.mm(adjacency, self.near(x))
        else:
            messages = F.relu(self.near(x))[links[1]]
            near = torch.zeros_like(x).index_add(0, links[0], messages * torch.rand(len(messages), 1, device="cuda"))
        return F.relu(self.own(x) + near)


class Module(nn.Module):
    def __init__(self, width=128, layers=3):
        super().__init__()
        self.enter, self.leave = nn.Linear(64, width), nn.Linear(width, 10)
        self.convs = nn.ModuleList(Conv(width) for _ in range(layers))

    def training_step(self, x, links, labels, adjacency):
        x = self.enter(x)
        for conv in self.convs:
            x = conv(x, links, adjacency)
        return F.cross_entropy(self.leave(x), labels)


class Trainer:
    def __init__(self, callback):
        self.callback = callback

    def fit(self, module, nodes=40_000, edges=800_000):
        self.callback.setup()
        module.cuda()
        optimizer = torch.optim.Adam(module.parameters())
        links, x, labels = torch.randint(0, nodes, (2, edges)), torch.randn(nodes, 64), torch.randint(0, 10, (nodes,))
        adjacency = torch.sparse_coo_tensor(links, torch.rand(edges), (nodes, nodes)).cuda() if FIXED else None
        links, x, labels = links.cuda(), x.cuda(), labels.cuda()
        try:
            for _ in range(3):
                loss = module.training_step(x, links, labels, adjacency)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        finally:
            self.callback.teardown()
            print("truth", {"links": links.nbytes, "x": x.nbytes}, torch.cuda.max_memory_allocated())


Trainer(CUDAMemorySnapshotCallback(FOLDER)).fit(Module())
