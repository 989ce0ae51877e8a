# SPDX-License-Identifier: Apache-2.0
"""Few-shot learning: a network is adapted to each task in a few steps, and its start is learned through them."""
import gc
import sys

import torch
import torch.nn.functional as F
from torch import nn

MODE = sys.argv[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(c, 64, 3, padding=1) for c in (3, 64, 64, 64))
        self.norms = nn.ModuleList(nn.BatchNorm2d(64, track_running_stats=False) for _ in range(4))
        self.head = nn.Linear(64 * 25, 5)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.max_pool2d(norm(conv(x)).relu(), 2)
        return self.head(x.flatten(1))


class FastModel:
    def __init__(self, net):
        self.net = net
        self.fast = dict(net.named_parameters())
        self.history = []
        self.forward = self.call

    def call(self, x):
        return torch.func.functional_call(self.net, self.fast, (x,))

    def adapt(self, loss, rate):
        grads = torch.autograd.grad(loss, list(self.fast.values()), create_graph=True)
        self.fast = {k: w - rate * g for (k, w), g in zip(self.fast.items(), grads)}
        self.history.append(self.fast)


class MAML:
    def __init__(self):
        self.net = Net().cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def inner_loop(self, shots, labels):
        fast = FastModel(self.net)
        for _ in range(3):
            fast.adapt(F.cross_entropy(fast.forward(shots), labels), 0.4)
        return fast

    def outer_loop(self, batch, is_train):
        loss = 0
        for shots, labels, queries, answers in batch:
            fast = self.inner_loop(shots, labels)
            loss = loss + F.cross_entropy(fast.forward(queries), answers)
        if is_train:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def tasks(n):
    for _ in range(n):
        y = torch.randint(5, (25,), device="cuda")
        yield torch.randn(25, 3, 84, 84, device="cuda"), y, torch.randn(25, 3, 84, 84, device="cuda"), y


def run_epoch(model, steps, is_train):
    total = 0.0
    for batch in (tasks(2) for _ in range(steps)):
        total += model.outer_loop(batch, is_train)
        if MODE == "fixed":
            gc.collect()
    return total / steps


def main():
    model = MAML()
    for epoch in range(2):
        print(epoch, run_epoch(model, 3, True), run_epoch(model, 5, False))


main()
