# SPDX-License-Identifier: Apache-2.0
"""At the end of training the weights of the best epoch are read back, and the model is tested with them."""
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary=60000, width=768, layers=4):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encode = nn.LSTM(width, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 24)

    def forward(self, ids):
        return self.head(self.encode(self.embed(ids))[0])


class State:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=1e-4)
        self.best_metric, self.best_state = None, None


def keep_best(state, metric, file):
    if state.best_metric is None or metric > state.best_metric:
        state.best_metric = metric
        file.seek(0)
        torch.save(state.model.state_dict(), file)


def load_best(state, file):
    file.seek(0)
    if sys.argv[1] == "fixed":
        state.model.cpu()
        weights = torch.load(file, map_location="cpu")
    else:
        weights = torch.load(file)
    state.model.load_state_dict(weights)
    state.model.cuda()
    return state.model


def train(state, file, epochs=3):
    for epoch in range(epochs):
        for _ in range(2):
            ids, tags = torch.randint(0, 60000, (8, 64), device="cuda"), torch.randint(0, 24, (8, 64), device="cuda")
            loss = F.cross_entropy(state.model(ids).flatten(0, 1), tags.flatten())
            state.optimizer.zero_grad()
            loss.backward()
            state.optimizer.step()
        keep_best(state, (0.71, 0.78, 0.77)[epoch], file)


with torch.device("cuda"):
    state = State(Tagger())
with tempfile.TemporaryFile() as file:
    train(state, file)
    model = load_best(state, file)
with torch.no_grad():
    print(model(torch.randint(0, 60000, (8, 64), device="cuda")).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
