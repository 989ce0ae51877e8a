# SPDX-License-Identifier: Apache-2.0
"""Questions and answers of scanned forms are linked: each form is a graph of its text boxes, and every pair of boxes is classified."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

CHUNKS, OUT, HIDDEN, POLAR, NODE_CLASSES, BATCH, EPOCHS = (4, 300, 256), 48, 128, 6, 4, 16, 4


class Form:
    def __init__(self, boxes):
        pairs = torch.cartesian_prod(torch.arange(boxes), torch.arange(boxes))
        self.src, self.dst = pairs[pairs[:, 0] != pairs[:, 1]].t()
        self.feat, self.polar = torch.randn(boxes, sum(CHUNKS)), torch.randn(len(self.src), POLAR)
        self.node_labels, self.edge_labels = torch.randint(0, NODE_CLASSES, (boxes,)), (torch.rand(len(self.src)) < 0.02).long()

    def to(self, device):
        for name, value in vars(self).items():
            setattr(self, name, value.to(device))
        return self


def batch_graphs(graphs):
    batched, offset = Form.__new__(Form), 0
    for name in ("feat", "polar", "node_labels", "edge_labels"):
        setattr(batched, name, torch.cat([getattr(g, name) for g in graphs]))
    sources, targets = [], []
    for g in graphs:
        sources.append(g.src + offset)
        targets.append(g.dst + offset)
        offset += len(g.feat)
    batched.src, batched.dst = torch.cat(sources), torch.cat(targets)
    return batched


class E2E(nn.Module):
    def __init__(self):
        super().__init__()
        self.projector = nn.ModuleList(nn.Sequential(nn.Linear(c, OUT), nn.LayerNorm(OUT), nn.ReLU()) for c in CHUNKS)
        width = OUT * len(CHUNKS)
        self.message_passing, self.norm = nn.Linear(2 * width, width), nn.LayerNorm(width)
        self.node_pred = nn.Sequential(nn.Linear(width, NODE_CLASSES), nn.LayerNorm(NODE_CLASSES))
        self.w1, self.edge_norm, self.w2 = nn.Linear(2 * (width + NODE_CLASSES) + POLAR, HIDDEN), nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, 2)

    def forward(self, g):
        h = torch.cat([project(x) for project, x in zip(self.projector, g.feat.split(CHUNKS, 1))], 1)
        degree = torch.bincount(g.dst, minlength=len(h)).clamp(min=1).unsqueeze(1)
        received = torch.zeros_like(h).index_add(0, g.dst, h[g.src]) / degree
        h = F.relu(self.norm(self.message_passing(torch.cat([h, received], 1))))
        nodes = self.node_pred(h)
        classes = nodes.softmax(1)
        edges = torch.cat([h[g.src], classes[g.src], g.polar, h[g.dst], classes[g.dst]], 1)
        return nodes, self.w2(F.relu(self.edge_norm(self.w1(edges))))


def compute_loss(graph):
    nodes, edges = model(graph)
    return F.cross_entropy(nodes, graph.node_labels) + F.cross_entropy(edges, graph.edge_labels)


def train_step(graph):
    loss = compute_loss(graph)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(42)
forms = [Form(boxes) for boxes in torch.randint(20, 72, (149,)).tolist()]
train_graphs, val_graphs = forms[:134], forms[134:]
device = torch.device("cuda")
model = E2E().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
vg = batch_graphs(val_graphs).to(device)
if sys.argv[1] != "fixed":
    tg = batch_graphs(train_graphs).to(device)
for epoch in range(EPOCHS):
    model.train()
    if sys.argv[1] == "fixed":
        loss = sum(train_step(batch_graphs(train_graphs[i:i + BATCH]).to(device)) for i in range(0, len(train_graphs), BATCH))
    else:
        loss = train_step(tg)
    model.eval()
    with torch.no_grad():
        val_loss = compute_loss(vg).item()
    print(epoch, loss, val_loss, torch.cuda.max_memory_allocated() >> 20, "MiB")
