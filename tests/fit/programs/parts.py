# SPDX-License-Identifier: Apache-2.0
"""Models, data and the start that the programs of this folder share. A file runs one of its programs: late.py second-model.

The decorator's words are read by ../verdict.py, from the text: `leaks` (memory rises until the run ends), `grows` (it rises for a
while), `goes_on` (the program does its work after it ran out of memory)."""
import atexit
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}
GPU = torch.device("cuda")


def program(**_):
    def add(function):
        PROGRAMS[function.__name__.replace("_", "-")] = function
        return function
    return add


def counted():
    """PyTorch's own counters."""
    print("TRUTH " + json.dumps(dict(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(),
                                     ooms=torch.cuda.memory_stats().get("num_ooms", 0))), flush=True)
    time.sleep(0.3)  # Python that ends right behind a backward pass may abort (docs/reliability.md)


def main():
    atexit.register(counted)  # also where the program fails
    PROGRAMS[sys.argv[1]]()


def mlp(width=2048, depth=6, out=1000, inputs=None):
    layers = [nn.Linear(inputs or width, width), nn.GELU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, out))


class Language(nn.Module):
    """A small transformer for text."""

    def __init__(self, vocabulary=16000, width=512, layers=6):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def loss(self, ids):
        return F.cross_entropy(self(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


class Vision(nn.Module):
    """Convolutions with a classifier behind them."""

    def __init__(self, width=64, classes=100):
        super().__init__()
        channels = [3, width, 2 * width, 4 * width, 8 * width]
        self.features = nn.Sequential(*[layer for a, b in zip(channels, channels[1:]) for layer in (
            nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))])
        self.classifier = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes))

    def forward(self, x):
        return self.classifier(self.features(x))


class Sample:
    """A batch that knows its view, and the view its batch."""

    def __init__(self, x):
        self.x = x
        self.view = lambda: self.x[:1]


def text(batch, length, vocabulary=16000):
    return torch.randint(0, vocabulary, (batch, length), device=GPU)


def labels(n, classes=1000):
    return torch.randint(0, classes, (n,), device=GPU)


def pictures(batch, size=64):
    return torch.randn(batch, 3, size, size, device=GPU)


def learn(optimizer, loss):
    """One step of it."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
