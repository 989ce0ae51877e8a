# SPDX-License-Identifier: Apache-2.0
"""Training of an image classifier with a callback that observes refusals; memory runs out in the first evaluation."""
import sys
from pathlib import Path
import pickle

import torch
import torch.nn.functional as F
from torch import nn


class OOMObserver:
    def __init__(self, folder, max_entries=100000):
        self.folder, self.max_entries = folder, max_entries

    def init(self):
        def oom_observer(device, alloc, device_alloc, device_free):
            snapshot = torch.cuda.memory._snapshot()
            if all(len(t) == 0 for t in snapshot["device_traces"]):
                return
            with open(self.folder / "rank0.oom_snapshot.pickle", "wb") as fd:
                pickle.dump(snapshot, fd)

        torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=self.max_entries, trace_alloc_record_context=True)
        torch._C._cuda_attach_out_of_memory_observer(oom_observer)


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.body, self.skip = nn.Sequential(conv(a, b, stride), nn.Conv2d(b, b, 3, 1, 1)), nn.Conv2d(a, b, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(conv(3, width, 2), Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2), nn.AdaptiveAvgPool2d(1),
                                 nn.Flatten(), nn.Linear(4 * width, 1000))

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for callback in callbacks:
            callback.init()

    def fit(self, steps):
        for _ in range(steps):
            x, y = torch.rand(32, 3, 224, 224).cuda(), torch.randint(0, 1000, (32,)).cuda()
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.evaluate()

    def evaluate(self, batch=192):
        self.model.eval()
        for _ in range(2):
            x, y = torch.rand(batch, 3, 224, 224).cuda(), torch.randint(0, 1000, (batch,)).cuda()
            self.model(x).argmax(1).eq(y).float().mean().cpu()


Trainer(Classifier().cuda(), [OOMObserver(Path(sys.argv[1]))]).fit(4)
