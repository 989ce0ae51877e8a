# SPDX-License-Identifier: Apache-2.0
"""Training a text classifier with early stopping: the best weights on the validation set are what is used at the end."""
import sys
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, vocabulary=40000, width=768, layers=6):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 12, 4 * width, 0.0, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, 4)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Stopper:
    def __init__(self, patience=3):
        self.best, self.weights, self.patience, self.bad = None, None, patience, 0

    def update(self, metric, model):
        if self.best is None or metric > self.best:
            self.best, self.bad = metric, 0
            if sys.argv[1] == "fixed":
                self.weights = {k: t.detach().cpu() for k, t in model.state_dict().items()}
            else:
                self.weights = deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def batch(size):
    return torch.randint(0, 40000, (size, 64), device="cuda"), torch.randint(0, 4, (size,), device="cuda")


def train_epoch(model, optimizer, steps=3):
    model.train()
    for _ in range(steps):
        ids, labels = batch(16)
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


with torch.device("cuda"):
    model = Classifier()
optimizer, stopper = torch.optim.AdamW(model.parameters(), lr=2e-5), Stopper()
accuracies = [0.41, 0.52, 0.57, 0.55, 0.58]
for epoch, accuracy in enumerate(accuracies):
    train_epoch(model, optimizer)
    model.eval()
    with torch.no_grad():
        model(batch(32)[0]).argmax(-1)
    if stopper.update(accuracy, model):
        break
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
model.load_state_dict(stopper.weights)
