# SPDX-License-Identifier: Apache-2.0
"""A network grows while it learns: statistics of its layers over a data set say where neurons are added."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

INPUTS, WIDTH, CLASSES, BATCH = 784, 1024, 10, 1024


class TensorStatistic:
    def __init__(self, function):
        self.function, self.value, self.samples, self.updated = function, None, 0, True

    def update(self):
        if not self.updated:
            update, n = self.function()
            self.value = update if self.value is None else self.value + update
            self.samples, self.updated = self.samples + n, True

    def __call__(self):
        return self.value / self.samples


class MergeModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.store_activity, self.activity = False, None
        self.tensor_s = TensorStatistic(self.compute_s_update)

    def compute_s_update(self):
        return self.activity.t() @ self.activity, len(self.activity)

    def forward(self, x):
        y = F.selu(x)
        if self.store_activity:
            self.activity = y.detach() if sys.argv[1] == "fixed" else y
            self.tensor_s.updated = False
        return y


class GrowingMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.merges, self.head = nn.ModuleList(MergeModule() for _ in self.layers), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for layer, merge in zip(self.layers, self.merges):
            x = merge(layer(x))
        return self.head(x)

    def gather(self, on):
        for merge in self.merges:
            merge.store_activity = on


model = GrowingMLP().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    images, labels = torch.rand(BATCH, INPUTS).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.gather(True)
for step in range(25):
    images, labels = torch.rand(BATCH, INPUTS).cuda(), torch.randint(0, CLASSES, (BATCH,)).cuda()
    model.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    for merge in model.merges:
        merge.tensor_s.update()
    if step % 8 == 0:
        print(step, torch.cuda.memory_allocated() >> 20, "MiB")
print([tuple(m.tensor_s().shape) for m in model.merges], torch.cuda.max_memory_allocated() >> 20, "MiB")
